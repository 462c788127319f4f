"""Azure's domains, and URLs of the simulator's proxy and metadata service."""

from __future__ import annotations

from urllib.parse import quote

BLOBS, DFS, FILES = "blob.core.windows.net", "dfs.core.windows.net", "file.core.windows.net"
REGISTRIES = "azurecr.io"
CLUSTERS = "azmk8s.io"
ALL = (BLOBS, DFS, FILES, REGISTRIES, CLUSTERS)
GRAPH, LOGIN = "graph.microsoft.com", "login.microsoftonline.com"
SERVED = (GRAPH, LOGIN)
"""Microsoft's hosts that simulated Resource Manager serves through the proxy."""
MICROSOFT = (
    *("microsoft.com", "microsoftonline.com", "azure.com", "azure.net", "windows.net", "aka.ms", "live.com"),
    *("azureedge.net", "azurefd.net", "azurewebsites.net", "trafficmanager.net", "cloudapp.net", "visualstudio.com"),
    *("msauth.net", "msftauth.net", "office.com", "office365.com", "windows.com", "msecnd.net"),
    *("169.254.169.254", "168.63.129.16"),  # Azure's metadata service and DNS server, if this machine is in Azure
)
"""Microsoft's domains and addresses. The proxy blocks them, because requests could contain simulated tokens."""
INSIDE = "/inside/"
IDENTITY = "/identity/token"
"""The path at which machines request tokens of their managed identity (`managed_identity.py`)."""


def is_microsoft(host: str) -> bool:
    return any(f".{host.lower().rstrip('.')}".endswith(f".{domain}") for domain in MICROSOFT)


def proxy(port: int, label: str) -> str:
    """Returns the URL of the proxy (`gateway.py`) for the network `label`. Empty means outside all networks.

    The URL has a password, because Python clients do not send a user name without a password.
    """
    return f"http://{quote(label, safe='')}:inside@127.0.0.1:{port}" if label else f"http://127.0.0.1:{port}"


def machine(label: str) -> str:
    """Returns the metadata service's path prefix for a machine in the network `label`.

    Machines outside all networks (empty `label`) have no metadata service.
    """
    return f"{INSIDE}{quote(label, safe='')}" if label else "/outside"
