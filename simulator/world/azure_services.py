"""Addresses and credentials of the simulated Azure services that clusters and nodes use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Changed = tuple[int, Mapping[str, str | None] | None]
"""The number of writes to a container, and the blobs written since a given number, by name with their etags.

The etag of a removed blob is None. An empty etag means that the blob must be read to find out. Instead of the blobs,
None means that any blob may have changed.
"""


UNKNOWN: Changed = (0, None)
"""No information on changes: any blob may differ."""


@dataclass(frozen=True)
class BlobService:
    """The blob endpoint of one account or of all accounts."""

    url: str
    """`https://127.0.0.1:<port>/<account>`, without the account for all. With a `proxy`, it has a host name."""
    ca_file: Path
    """The authority that signed the service's certificate (PEM)."""
    proxy: str = ""
    """URL of the proxy, or empty for a direct connection."""
    changes: Callable[[str, int], Changed] = lambda _container, _since: UNKNOWN
    """Returns the changes of a container since the given number of writes."""


@dataclass(frozen=True)
class Entra:
    """Authentication and authorization of Entra users by an API server."""

    issuer: str
    """The issuer of users' tokens (claim `iss`)."""
    discovery: str
    audience: str
    """The audience that tokens must have (claim `aud`)."""
    ca: str
    """The authority (PEM) that signed the certificates of both addresses."""
    guard: str
    """URL of an authorization webhook, or empty if only the cluster's roles apply."""
    token: str
