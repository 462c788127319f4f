"""By what Azure is found: its domains in public DNS, and where a machine finds its metadata.

Names below the domains are simulated: none of them is looked up anywhere else.
"""

from __future__ import annotations

from urllib.parse import quote

BLOBS, DFS = "blob.core.windows.net", "dfs.core.windows.net"
REGISTRIES = "azurecr.io"
CLUSTERS = "azmk8s.io"
ALL = (BLOBS, DFS, REGISTRIES, CLUSTERS)
INSIDE = "/inside/"


def machine(label: str) -> str:
    """The first part of the paths of the metadata service, for a machine in that network.

    An empty label is one outside of all, where there is no such service.
    """
    return f"{INSIDE}{quote(label, safe='')}" if label else "/outside"
