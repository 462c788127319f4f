"""The metadata service of machines (169.254.169.254): which address one has in its network. Nothing else is served.

The network is part of the path, as that service knows by the wire who asks. Shape: Azure's page on the service, of
`/metadata/instance/network/interface`.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from ipaddress import ip_network

from simulator.azure import machines
from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError, bad_request
from simulator.azure.ids import ResourceId
from simulator.azure.store import Body

PATH = "/metadata/instance/network/interface"


def answer(world: World, path: str, headers: Mapping[str, str]) -> list[Body]:
    """Of a GET, which needs no token but this header. Raises ArmError."""
    if headers.get("metadata", "").lower() != "true":
        raise bad_request("Required metadata header not specified", code="BadRequest")
    network = machines.network(world, path.removesuffix(PATH))
    if network is None:
        raise ArmError(HTTPStatus.NOT_FOUND, "NotFound", "There is no machine.")
    address = {"privateIpAddress": _address(world, network), "publicIpAddress": ""}
    return [{"ipv4": {"ipAddress": [address], "subnet": []}, "ipv6": {"ipAddress": []}}]


def _address(world: World, network: ResourceId) -> str:
    """That of the first machine there is, else one that a runner might have: the last of the network."""
    if there := machines.address(world, network):
        return there
    record = world.store.get(network)
    prefixes: list[str] = record.properties["addressSpace"]["addressPrefixes"] if record else []
    return str(ip_network(prefixes[0])[-2])
