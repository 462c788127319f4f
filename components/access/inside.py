"""Whether this machine is inside: whether it reaches what only a private network reaches.

A cluster is asked itself. Before there is one, only Azure's metadata service knows where a machine is, and it knows no
network by name: so its address is looked for among the addresses of that network.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import requests
from urllib3.exceptions import InsecureRequestWarning

from components.preflight.arm import MachineTrust

_TIMEOUT_S = 10.0
_METADATA_TIMEOUT_S = 2.0
"""It answers from the machine's own host, or not at all."""
_METADATA = "AZURE_POD_IDENTITY_AUTHORITY_HOST"
"""Names another place of that service, as to Azure's SDKs (azure-identity, _credentials/imds.py)."""
_INTERFACES = "/metadata/instance/network/interface?api-version=2021-02-01"


def answers(host: str) -> bool:
    """Whether an API server answers, by whatever proxy the environment names: kubectl and the plugins go that way too.

    Which one it is, its certificate need not prove: nothing is told to it. But it is one of Kubernetes: a name may also
    lead to a portal or a proxy that answers everything.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRequestWarning)
        try:
            answer = requests.get(f"https://{host}/version", verify=False, timeout=_TIMEOUT_S)  # noqa: S501 - see above
            return _is_of_kubernetes(answer.json())
        except (OSError, ValueError):
            return False


def _is_of_kubernetes(found: Any) -> bool:
    """Its version, or why it is not told: a Status (Kubernetes' API reference, "Status v1 meta")."""
    if not isinstance(found, dict):
        return False
    return "gitVersion" in found or (found.get("kind"), found.get("apiVersion")) == ("Status", "v1")


def is_in(ranges: Iterable[str]) -> bool:
    """Whether this machine has an address in one of these ranges; False for one that is not Azure's."""
    networks = [IPv4Network(range_) for range_ in ranges if ":" not in range_]
    return bool(networks) and any(address in network for address in _addresses() for network in networks)


def _addresses() -> list[IPv4Address]:
    """Returns the private addresses of this machine, as Azure knows them."""
    url = f"{os.environ.get(_METADATA, 'http://169.254.169.254')}{_INTERFACES}"
    with requests.Session() as session:
        session.trust_env = False  # a proxy would report its own addresses
        session.mount("https://", MachineTrust())  # for a metadata service at another address than Azure's
        try:
            found = session.get(url, headers={"Metadata": "true"}, timeout=_METADATA_TIMEOUT_S).json()
            return [IPv4Address(each) for each in _told(found)]
        except (OSError, ValueError, AttributeError, TypeError):
            return []


def _told(interfaces: Any) -> Iterable[str]:
    for interface in interfaces:
        for address in (interface.get("ipv4") or {}).get("ipAddress", ()):
            if private := address.get("privateIpAddress"):
                yield private
