"""By what Azure is found: its domains in public DNS, and for a machine in a network its proxy and its metadata.

Names below the domains are simulated: none of them is looked up anywhere else.
"""

from __future__ import annotations

from urllib.parse import quote

BLOBS, DFS, FILES = "blob.core.windows.net", "dfs.core.windows.net", "file.core.windows.net"
REGISTRIES = "azurecr.io"
CLUSTERS = "azmk8s.io"
ALL = (BLOBS, DFS, FILES, REGISTRIES, CLUSTERS)
INSIDE = "/inside/"
IDENTITY = "/identity/token"
"""Where machines ask for tokens of their managed identity (`managed_identity.py`)."""


def proxy(port: int, label: str) -> str:
    """URL of the proxy (`gateway.py`) for whoever is in that network; outside of all, for an empty label.

    With a password, since clients of Python send no user without one.
    """
    return f"http://{quote(label, safe='')}:inside@127.0.0.1:{port}" if label else f"http://127.0.0.1:{port}"


def machine(label: str) -> str:
    """The first part of the paths of the metadata service, for a machine in that network.

    An empty label is one outside of all, where there is no such service.
    """
    return f"{INSIDE}{quote(label, safe='')}" if label else "/outside"
