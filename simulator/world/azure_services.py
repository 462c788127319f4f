"""The addresses and credentials of simulated Azure services that clusters and nodes use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Changed = tuple[int, Mapping[str, str | None] | None]
"""How often a container was written to, and which blobs since a given time, by name with their etags.

No etag is that of a blob that was removed, an empty one of one that only a look tells of; without names, all may be
other.
"""


UNKNOWN: Changed = (0, None)
"""Nothing is known of changes: any blob may differ."""


@dataclass(frozen=True)
class BlobService:
    """Where the blobs of an account, or of all, are served."""

    url: str
    """`https://127.0.0.1:<port>/<account>`, for all without the account; by name where `proxy` leads there."""
    ca_file: Path
    """The authority that signed its certificate (PEM)."""
    proxy: str = ""
    """URL; empty where it is reached without."""
    changes: Callable[[str, int], Changed] = lambda _container, _since: UNKNOWN
    """Returns the changes of a container since the given number of writes."""


@dataclass(frozen=True)
class Entra:
    """How an API server authenticates and authorizes users of Entra."""

    issuer: str
    """The issuer of users' tokens (claim `iss`)."""
    discovery: str
    """URL of the OpenID discovery document."""
    audience: str
    """The audience that tokens must have (claim `aud`)."""
    ca: str
    """The authority (PEM) that signed the certificate of both addresses."""
    guard: str
    """URL of an authorization webhook; empty where the roles in the cluster alone count."""
    token: str
    """The bearer token for the webhook."""
