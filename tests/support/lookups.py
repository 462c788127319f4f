"""Resource Manager's answers to the program's GET requests, from a subscription with all rights and quotas."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from config.data.skus import catalogue
from config.rules.vcpu_quota import SPOT, TOTAL

Answer = tuple[int, bytes]
Fetch = Callable[[str, str], Answer]
ENDPOINT = "https://arm.test"
ALL = {"actions": ["*"], "notActions": []}
MANY = 1_000_000


def usage(name: str, limit: int, used: int = 0) -> dict[str, Any]:
    shown = {"value": name, "localizedValue": name}
    return {"unit": "Count", "currentValue": used, "limit": limit, "name": shown}


def usages() -> dict[str, Any]:
    names = {SPOT, TOTAL, *(sku.family for sku in catalogue().values())}
    return {"value": [usage(name, MANY) for name in sorted(names)]}


def size(name: str, region: str = "eastus", **more: Any) -> dict[str, Any]:
    return {"resourceType": "virtualMachines", "name": name, "locations": [region], "restrictions": [], **more}


NETWORKS = "/subscriptions/00000000-0000-0000-0000-00000000000a/resourceGroups/net/providers/Microsoft.Network"
HUB, ZONES = f"{NETWORKS}/virtualNetworks/hub", f"{NETWORKS}/privateDnsZones"
"""An existing network with subnets `nodes` and `endpoints`, and the parent of its linked zones."""
OWNER = "/subscriptions/a/providers/Microsoft.Authorization/roleDefinitions/8e3af657-a8ff-443c-a75c-2fe8c4bcb635"


def hub(
    location: str = "eastus",
    space: str = "192.168.0.0/16",
    dns: Sequence[str] = (),
    endpoints: Mapping[str, Any] | None = None,
    **nodes: Any,
) -> dict[str, Any]:
    """Returns the network HUB, optionally with DNS servers and more properties of its subnets."""
    subnets = {
        "nodes": {"addressPrefix": "192.168.0.0/24", **nodes},
        "endpoints": {"addressPrefix": "192.168.1.0/27", **(endpoints or {})},
    }
    listed = [{"id": f"{HUB}/subnets/{name}", "properties": each} for name, each in subnets.items()]
    more = {"dhcpOptions": {"dnsServers": list(dns)}} if dns else {}
    return {
        "location": location,
        "properties": {"addressSpace": {"addressPrefixes": [space]}, "subnets": listed, **more},
    }


def links(*networks: str) -> dict[str, Any]:
    return {"value": [{"name": "link", "properties": {"virtualNetwork": {"id": each}}} for each in networks]}


def everything(url: str, _token: str = "") -> Answer:
    path, query = urlsplit(url).path, unquote(urlsplit(url).query)
    if path == "/metadata/endpoints":
        return answer({"resourceManager": ENDPOINT})
    match path.rpartition("/")[2]:
        case "usages":
            return answer(usages())
        case "skus":
            region = re.findall(r"location eq '(\w+)'", query)[0]
            return answer({"value": [size(name, region) for name in catalogue()]})
        case "locks":
            return answer({"value": []})
        case "permissions":
            return answer({"value": [ALL]})
        case "hub":
            return answer(hub())
        case "privateDnsZones":
            return answer({"value": []})
        case "virtualNetworkLinks":
            return answer(links(HUB))
        case "roleAssignments":
            return answer({"value": [{"properties": {"roleDefinitionId": OWNER}}]})
        case namespace:
            return answer({"namespace": namespace, "registrationState": "Registered"})


def answer(body: Any, status: int = 200) -> Answer:
    """Returns an answer in the form of `components.preflight.arm.fetch`."""
    return status, json.dumps(body).encode()
