"""A request to the Resource Manager and its answer, without HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simulator.azure.subscription import Principal

CORRELATION = "x-ms-correlation-request-id"
CREATOR = "x-simulator-creator"
"""Of a GET's answer, and not Azure's: what its creation had as `CORRELATION`."""


@dataclass(frozen=True)
class Request:
    """`query` and `headers` have names in lower case; `body` is the parsed JSON."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    caller: Principal | None = None
    """None is the deployer."""


@dataclass(frozen=True)
class Asked:
    """A request to a path with parameters (`lookups.py`)."""

    names: Mapping[str, str]
    """The parameters, as `/subscriptions/{subscription}` names them."""
    query: Mapping[str, str]
    body: Any = None
    caller: Principal | None = None

    def __getitem__(self, name: str) -> str:
        return self.names[name]

    def field(self, name: str) -> str:
        """Returns a string of the request's body, empty where it has none."""
        found = self.body.get(name) if isinstance(self.body, dict) else None
        return found if isinstance(found, str) else ""


@dataclass(frozen=True)
class Response:
    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
