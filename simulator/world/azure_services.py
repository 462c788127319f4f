"""Services of simulated Azure as clusters and nodes are told of them: plain values, which both sides know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Changed = tuple[int, Mapping[str, str | None] | None]
"""How often a container was written to, and which blobs since a given time, by name with their etags.

No etag is that of a blob that was removed, an empty one of one that only a look tells of; without names, all may be
other.
"""


@dataclass(frozen=True)
class BlobService:
    """Where the blobs of an account, or of all, are served."""

    url: str
    """`https://127.0.0.1:<port>/<account>`, for all without the account; by name where `proxy` leads there."""
    ca_file: Path
    """The authority that signed its certificate (PEM)."""
    proxy: str = ""
    """URL; empty where it is reached without."""
    changes: Callable[[str, int], Changed] = lambda _container, _since: (0, None)
    """Of a container of the account, since it was written to so often."""


@dataclass(frozen=True)
class Entra:
    """By what the API server of a cluster knows people, and whom it asks what they may do."""

    issuer: str
    """Who signs people's tokens, as these say it."""
    discovery: str
    """URL of what the issuer says of itself, which leads to its keys."""
    audience: str
    """Whom the tokens must be for."""
    ca: str
    """The authority (PEM) that signed the certificate of both addresses."""
    guard: str
    """URL of an authorization webhook; empty where the roles in the cluster alone count."""
    token: str
    """What the webhook wants to see."""
