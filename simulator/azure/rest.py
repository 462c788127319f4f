"""Resource Manager's requests and responses, without HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simulator.azure.subscription import Principal

CORRELATION = "x-ms-correlation-request-id"
CREATOR = "x-simulator-creator"
"""A header of GET responses, which Azure does not have: the `CORRELATION` of the request that created the resource."""


@dataclass(frozen=True)
class Request:
    """A request. `query` and `headers` have lower-case names; `body` is the parsed JSON."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    caller: Principal | None = None
    """None for the deployer."""


@dataclass(frozen=True)
class PathRequest:
    """A request to a path with parameters (`lookups.py`)."""

    names: Mapping[str, str]
    query: Mapping[str, str]
    body: Any = None
    caller: Principal | None = None

    def __getitem__(self, name: str) -> str:
        return self.names[name]

    def field(self, name: str) -> str:
        """Returns a string property of the body, or an empty string."""
        found = self.body.get(name) if isinstance(self.body, dict) else None
        return found if isinstance(found, str) else ""


@dataclass(frozen=True)
class Response:
    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
