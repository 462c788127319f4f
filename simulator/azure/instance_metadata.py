"""The metadata service of machines (169.254.169.254): which address one has in its network. Nothing else is served.

The network is part of the path, as that service knows by the wire who asks. Shape: Azure's page on the service, of
`/metadata/instance/network/interface`.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from ipaddress import ip_network

from simulator.azure import domains, inside
from simulator.azure.errors import ArmError, bad_request
from simulator.azure.ids import ResourceId, parse_id
from simulator.azure.store import Body
from simulator.azure.types.network_interface import rules as interfaces
from simulator.azure.types.subnet.rules import network_id
from simulator.azure.world import World

PATH = "/metadata/instance/network/interface"


def answer(world: World, path: str, headers: Mapping[str, str]) -> list[Body]:
    """Of a GET, which needs no token but this header. Raises ArmError."""
    if headers.get("metadata", "").lower() != "true":
        raise bad_request("Required metadata header not specified", code="BadRequest")
    here = path.removesuffix(PATH)
    label = here.removeprefix(domains.INSIDE) if here.startswith(domains.INSIDE) else ""
    found = inside.find(world.store.all(), label) if label else []
    if not found:
        raise ArmError(HTTPStatus.NOT_FOUND, "NotFound", "There is no machine.")
    address = {"privateIpAddress": _address(world, found[0]), "publicIpAddress": ""}
    return [{"ipv4": {"ipAddress": [address], "subnet": []}, "ipv6": {"ipAddress": []}}]


def _address(world: World, network: ResourceId) -> str:
    """That of the first machine there is, else one that a runner might have: the last of the network."""
    for interface in world.store.all(interfaces.TYPE):
        (use,) = interfaces.KIND.uses(world, interface)
        if network_id(parse_id(use.of)).key == network.key:
            return use.address
    record = world.store.get(network)
    prefixes: list[str] = record.properties["addressSpace"]["addressPrefixes"] if record else []
    return str(ip_network(prefixes[0])[-2])
