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
"""Any blob may differ."""


@dataclass(frozen=True)
class BlobService:
    url: str
    """`https://127.0.0.1:<port>/<account>`, without the account for all. With a `proxy`, it has a host name."""
    ca_file: Path
    """PEM."""
    proxy: str = ""
    """Empty for a direct connection."""
    changes: Callable[[str, int], Changed] = lambda _container, _since: UNKNOWN
    """Returns the changes since the given number of writes."""


@dataclass(frozen=True)
class Entra:
    """An API server authenticates and authorizes Entra users by it."""

    issuer: str
    """The claim `iss` of users' tokens."""
    discovery: str
    audience: str
    """The claim `aud` of tokens."""
    ca: str
    """PEM of the authority for both addresses."""
    guard: str
    """The URL of an authorization webhook, or empty if only the cluster's roles apply."""
    token: str
