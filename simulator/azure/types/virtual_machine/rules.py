"""Virtual machines. They do not run: only size, identity and network interface are simulated.

Error text for an unknown size: Azure's page on `InvalidParameter` errors of virtual machines.
"""

from __future__ import annotations

from config.data import skus
from simulator.azure import resource_types
from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request
from simulator.azure.faults import CREATED
from simulator.azure.kind import Kind, Use
from simulator.azure.store import Body, Record
from simulator.azure.subscription import guid
from simulator.azure.types import _rules
from simulator.azure.types.network_interface import rules as interfaces
from simulator.azure.types.user_assigned_identity import rules as identities

TYPE = "Microsoft.Compute/virtualMachines"


class VirtualMachines(Kind):
    """Machines for logins. PATCH accepts more than tags (VirtualMachineUpdate in azure-rest-api-specs)."""

    patches_tags = False

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        _rules.check_region(world, record, body, existing)
        _check_size(world, body)
        identities.check(world, record.id, body.get("identity", {}))
        nic = interface(body["properties"])
        path = "properties.networkProfile.networkInterfaces.id"
        found = _rules.referenced(world, record.id, nic, interfaces.TYPE, path, body["location"])
        for use in resource_types.uses(world, found.id, but=record.id):
            message = f"Network Interface {found.id.text} is used by existing resource {use.by}."
            raise bad_request(message, code="NicInUse")
        _rules.save(world, record, body)

    def uses(self, world: World, record: Record) -> list[Use]:
        return [Use(interface(record.properties), record.id.text)]

    def view(self, world: World, record: Record) -> Body:
        identity = {"identity": _identity(world, record)} if "identity" in record.body else {}
        return super().view(world, record) | identity

    def outputs(self, world: World, record: Record) -> Body:
        system = {name: value for name, value in record.properties["osProfile"].items() if name != "customData"}
        return {
            "osProfile": system,
            "timeCreated": _rules.created_at(record),
            "vmId": guid(record.id.text, str(record.facts.get(CREATED, 0))),
        }


KIND = VirtualMachines()


def principals(world: World, machine: Record) -> list[str]:
    named = identities.principals(world, machine.body.get("identity", {}))
    return [each for each in (system_identity(machine), *named) if each]


def system_identity(machine: Record) -> str:
    """Returns the system-assigned identity's object id, or an empty string."""
    has = "SystemAssigned" in machine.body.get("identity", {}).get("type", "")
    return guid(machine.id.text, "identity", str(machine.facts.get(CREATED, 0))) if has else ""


def _identity(world: World, machine: Record) -> Body:
    identity: Body = identities.shown(world, machine.body["identity"])
    if not (own := system_identity(machine)):
        return identity
    return identity | {"principalId": own, "tenantId": world.subscription.tenant_id}


def interface(properties: Body) -> str:
    (found,) = properties["networkProfile"]["networkInterfaces"]
    text: str = found["id"]
    return text


def _check_size(world: World, body: Body) -> None:
    size = body["properties"]["hardwareProfile"]["vmSize"]
    known = {sku.name.lower(): sku for sku in skus.catalogue().values()}
    sku = known.get(size.lower())
    if sku is None or not world.subscription.offers(sku, body["location"]):
        offered = ", ".join(each.name for each in known.values() if world.subscription.offers(each, body["location"]))
        message = (
            f"The value {size} provided for the VM size is not valid (or not simulated). The valid sizes in the "
            f"current region are: {offered}. Find out more on the available VM sizes in each region at "
            "https://aka.ms/azure-regions."
        )
        raise bad_request(message, code="InvalidParameter", target="vmSize")
