"""Addresses and credentials of simulated Azure services for clusters and nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Changed = tuple[int, Mapping[str, str | None] | None]
"""The number of writes to a container, and the etags of blobs written after an earlier number, by blob name.

A removed blob's etag is None. If the etag is empty, read the blob. If there are no etags (None), any blob may have
changed.
"""


UNKNOWN: Changed = (0, None)
"""Any blob may have changed."""


@dataclass(frozen=True)
class BlobService:
    """The blob endpoint of one account or of all accounts."""

    url: str
    """`https://127.0.0.1:<port>/<account>`, or without `/<account>` for all accounts.

    With a `proxy`, the URL has a host name.
    """
    ca_file: Path
    """The CA (PEM) of the service's certificate."""
    proxy: str = ""
    """The proxy's URL, or empty for a direct connection."""
    changes: Callable[[str, int], Changed] = lambda _container, _since: UNKNOWN
    """Returns the changes in a container after a number of writes."""


@dataclass(frozen=True)
class Entra:
    """Authentication and authorization of Entra users by an API server."""

    issuer: str
    """The issuer of users' tokens (claim `iss`)."""
    discovery: str
    audience: str
    """The audience of the tokens (claim `aud`)."""
    ca: str
    """The CA (PEM) of the certificates at `discovery` and `guard`."""
    guard: str
    """URL of an authorization webhook, or empty if only the cluster's roles apply."""
    token: str
