"""Checks whether this machine can reach a private network.

If the cluster exists, its API server must answer. Before it exists, the machine must have an address in the network's
range, because Azure's metadata service reports a machine's addresses, but not the name of its network.
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
"""The metadata service runs on the machine's host, so it answers fast or not at all."""
_METADATA = "AZURE_POD_IDENTITY_AUTHORITY_HOST"
"""The variable that overrides the metadata service's URL, as in Azure's SDKs (azure-identity, _credentials/imds.py)."""
_INTERFACES = "/metadata/instance/network/interface?api-version=2021-02-01"


def answers(host: str) -> bool:
    """Returns whether `host` answers like an API server. Uses the proxy in the environment variables, like kubectl.

    The certificate is not verified, because the request has no secrets. Answers of login portals and proxies do not
    count.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRequestWarning)
        try:
            answer = requests.get(f"https://{host}/version", verify=False, timeout=_TIMEOUT_S)  # noqa: S501 - see above
            return _is_of_kubernetes(answer.json())
        except (OSError, ValueError):
            return False


def _is_of_kubernetes(found: Any) -> bool:
    """Returns whether `found` is a Kubernetes version or a Kubernetes error (API reference, "Status v1 meta")."""
    if not isinstance(found, dict):
        return False
    return "gitVersion" in found or (found.get("kind"), found.get("apiVersion")) == ("Status", "v1")


def is_in(ranges: Iterable[str]) -> bool:
    networks = [IPv4Network(range_) for range_ in ranges if ":" not in range_]
    return bool(networks) and any(address in network for address in _addresses() for network in networks)


def _addresses() -> list[IPv4Address]:
    url = f"{os.environ.get(_METADATA, 'http://169.254.169.254')}{_INTERFACES}"
    with requests.Session() as session:
        session.trust_env = False  # a proxy would report its own addresses
        session.mount("https://", MachineTrust())  # the variable may contain an HTTPS address
        try:
            found = session.get(url, headers={"Metadata": "true"}, timeout=_METADATA_TIMEOUT_S).json()
            return [IPv4Address(each) for each in _private_addresses(found)]
        except (OSError, ValueError, AttributeError, TypeError):
            return []


def _private_addresses(interfaces: Any) -> Iterable[str]:
    for interface in interfaces:
        for address in (interface.get("ipv4") or {}).get("ipAddress", ()):
            if private := address.get("privateIpAddress"):
                yield private
