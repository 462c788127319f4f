"""Who asks from inside of a network: the first part of a path says which (`domains.machine`), as on Azure the wire."""

from __future__ import annotations

from simulator.azure import domains, inside
from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request, conflict
from simulator.azure.ids import ResourceId, parse_id
from simulator.azure.rest import Asked
from simulator.azure.store import Body, Record
from simulator.azure.subscription import Principal
from simulator.azure.types.network_interface import rules as interfaces
from simulator.azure.types.user_assigned_identity import rules as identities
from simulator.azure.types.virtual_machine import rules as machines


def network(world: World, here: str) -> ResourceId | None:
    """The network of that part of a path; None outside of all."""
    label = here.removeprefix(domains.INSIDE) if here.startswith(domains.INSIDE) else ""
    found = inside.find(world.store.all(), label) if label else []
    return found[0] if found else None


def address(world: World, place: ResourceId) -> str | None:
    """That of the first interface in a network."""
    there = (each for each in world.store.all(interfaces.TYPE) if interfaces.network_of(each) == place)
    return next((interfaces.address(each) for each in there), None)


def signed_in(world: World, here: str) -> Principal | None:
    """The identity of the first machine there, which it has without naming one; None where there is no machine.

    Raises ArmError where it has several (azure-docs, "How to use managed identities on a VM", error handling).
    """
    place = network(world, here)
    machine = next((each for each in world.store.all(machines.TYPE) if place and _is_in(world, each, place)), None)
    if machine is None:
        return None
    wanted = machines.principals(world, machine)
    if len(wanted) > 1:
        message = "Multiple user assigned identities exist, please specify the clientId / resourceId of the identity"
        raise bad_request(message, code="invalid_request")
    found = (each.facts for each in world.store.all(identities.TYPE) if each.facts["principal"] in wanted)
    return next((Principal(object_id=facts["principal"], client_id=facts["client"]) for facts in found), None)


def run(_world: World, _asked: Asked) -> Body:
    """An extension or a command of a machine, on which no agent runs. Raises ArmError (hashicorp/terraform#24626)."""
    raise conflict(
        "This operation cannot be performed when extension operations are disallowed. To allow, please ensure VM Agent "
        "is installed on the VM and the osProfile.allowExtensionOperations property is true."
    )


def _is_in(world: World, machine: Record, place: ResourceId) -> bool:
    interface = world.store.get(parse_id(machines.interface(machine.properties)))
    return interface is not None and interfaces.network_of(interface) == place
