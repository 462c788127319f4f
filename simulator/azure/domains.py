"""By what Azure is found: its domains in public DNS, and for a machine in a network its proxy and its metadata.

Names below the domains are simulated: none of them is looked up anywhere else.
"""

from __future__ import annotations

from urllib.parse import quote

BLOBS, DFS, FILES = "blob.core.windows.net", "dfs.core.windows.net", "file.core.windows.net"
REGISTRIES = "azurecr.io"
CLUSTERS = "azmk8s.io"
ALL = (BLOBS, DFS, FILES, REGISTRIES, CLUSTERS)
GRAPH, LOGIN = "graph.microsoft.com", "login.microsoftonline.com"
SERVED = (GRAPH, LOGIN)
"""Hosts of Microsoft that the server of simulated Resource Manager answers for, through the proxy."""
MICROSOFT = (
    *("microsoft.com", "microsoftonline.com", "azure.com", "azure.net", "windows.net", "aka.ms", "live.com"),
    *("azureedge.net", "azurefd.net", "azurewebsites.net", "trafficmanager.net", "cloudapp.net", "visualstudio.com"),
    *("msauth.net", "msftauth.net", "office.com", "office365.com", "windows.com", "msecnd.net"),
    *("169.254.169.254", "168.63.129.16"),  # metadata of the machine and its agent's host, where this one is Azure's
)
"""Domains and addresses of Microsoft. The proxy lets no request to them out, which could carry simulated tokens."""
INSIDE = "/inside/"
IDENTITY = "/identity/token"
"""Where machines ask for tokens of their managed identity (`managed_identity.py`)."""


def is_microsoft(host: str) -> bool:
    return any(f".{host.lower().rstrip('.')}".endswith(f".{domain}") for domain in MICROSOFT)


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
