"""Requests from machines in a virtual network. The path prefix identifies the network (`domains.machine`).

The metadata service (169.254.169.254) serves only `/metadata/instance/network/interface` (shape: Azure's page).
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from ipaddress import ip_network

from simulator.azure import domains, inside
from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError, IdentityError, bad_request, conflict
from simulator.azure.ids import ResourceId, parse_id
from simulator.azure.rest import PathRequest
from simulator.azure.store import Body, Record
from simulator.azure.subscription import Principal
from simulator.azure.types.network_interface import rules as interfaces
from simulator.azure.types.user_assigned_identity import rules as identities
from simulator.azure.types.virtual_machine import rules as machines

METADATA = "/metadata/instance/network/interface"


def network(world: World, here: str) -> ResourceId | None:
    """Returns the network that a path prefix names, or None outside all networks."""
    label = here.removeprefix(domains.INSIDE) if here.startswith(domains.INSIDE) else ""
    found = inside.find(world.store.all(), label) if label else []
    return found[0] if found else None


def metadata(world: World, path: str, headers: Mapping[str, str]) -> list[Body]:
    if headers.get("metadata", "").lower() != "true":
        raise bad_request("Required metadata header not specified", code="BadRequest")
    place = network(world, path.removesuffix(METADATA))
    if place is None:
        raise ArmError(HTTPStatus.NOT_FOUND, "NotFound", "No machine runs in this network.")
    address = {"privateIpAddress": _address(world, place), "publicIpAddress": ""}
    return [{"ipv4": {"ipAddress": [address], "subnet": []}, "ipv6": {"ipAddress": []}}]


def _address(world: World, place: ResourceId) -> str:
    """Returns the address of the network's first interface. Without one, returns the last usable address."""
    for interface in world.store.all(interfaces.TYPE):
        if interfaces.network_of(interface) == place:
            return interfaces.address(interface)
    record = world.store.get(place)
    prefixes: list[str] = record.properties["addressSpace"]["addressPrefixes"] if record else []
    return str(ip_network(prefixes[0])[-2])


def signed_in(world: World, here: str) -> Principal | None:
    """Returns the user-assigned identity, if any, of a network's first machine, else None.

    Raises IdentityError for several identities (azure-docs, "How to use managed identities on a VM", error handling).
    """
    place = network(world, here)
    machine = next((each for each in world.store.all(machines.TYPE) if place and _is_in(world, each, place)), None)
    if machine is None:
        return None
    wanted = machines.principals(world, machine)
    if len(wanted) > 1:
        message = "Multiple user assigned identities exist, please specify the clientId / resourceId of the identity"
        raise IdentityError(HTTPStatus.BAD_REQUEST, "invalid_request", message)
    found = map(identities.principal, world.store.all(identities.TYPE))
    return next((each for each in found if each.object_id in wanted), None)


def run(_world: World, _request: PathRequest) -> Body:
    """Raises ArmError (hashicorp/terraform#24626) for extensions and commands, because machines have no agent here."""
    raise conflict(
        "This operation cannot be performed when extension operations are disallowed. To allow, please ensure VM Agent "
        "is installed on the VM and the osProfile.allowExtensionOperations property is true."
    )


def _is_in(world: World, machine: Record, place: ResourceId) -> bool:
    interface = world.store.get(parse_id(machines.interface(machine.properties)))
    return interface is not None and interfaces.network_of(interface) == place
