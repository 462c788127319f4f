"""Subnets of virtual networks, and their addresses.

Error texts: hashicorp/terraform-provider-azurerm#7687, Microsoft's page "A public IP address/subnet/network security
group in use can't be deleted", and sassoftware/viya4-iac-azure#108. For ranges outside the network: the tests of
Azure/go-autorest. The text for overlapping ranges is a guess.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, ip_network
from itertools import islice

from simulator.azure import resource_types
from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError, bad_request
from simulator.azure.ids import ResourceId
from simulator.azure.kind import Kind, Use
from simulator.azure.operations import remove
from simulator.azure.store import Body, Record
from simulator.azure.types import _rules
from simulator.azure.types.nat_gateway import rules as gateways
from simulator.azure.types.route_table import rules as route_tables

TYPE = "Microsoft.Network/virtualNetworks/subnets"
_FIRST, _KEPT = 4, 5
"""The index of the first usable address, and the number of reserved addresses (Azure's FAQ on virtual networks)."""
_NAMED = {"natGateway": gateways.TYPE, "routeTable": route_tables.TYPE}
"""Properties with a resource's id, and the type of this resource."""


class Subnets(Kind):
    """Child resources of a network. A request for a network can contain them inline."""

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        _store(world, _rules.found(world, record.id.parent), record, body, existing)

    def check_delete(self, world: World, record: Record) -> None:
        if users := [use.by for use in resource_types.uses(world, record.id)]:
            message = (
                f"Subnet {record.id.name} is in use by {' and '.join(users)} and cannot be deleted. In order to delete "
                "the subnet, delete all the resources within the subnet. See aka.ms/deletesubnet."
            )
            raise bad_request(message, code="InUseSubnetCannotBeDeleted")

    def uses(self, world: World, record: Record) -> list[Use]:
        named = (record.properties.get(name, {}).get("id") for name in _NAMED)
        return [Use(id_, record.id.text) for id_ in named if id_]

    def outputs(self, world: World, record: Record) -> Body:
        inside = [{"id": use.by} for use in resource_types.uses(world, record.id)]
        return {"ipConfigurations": inside} if inside else {}


KIND = Subnets()


def of(world: World, network: ResourceId) -> list[Record]:
    return [record for record in world.store.within(network) if record.id.type.lower() == TYPE.lower()]


def prefix(properties: Body) -> IPv4Network:
    """Returns the address range. Raises ArmError if invalid."""
    text = properties["addressPrefix"]
    try:
        return IPv4Network(text)
    except ValueError as error:
        message = f"The address prefix {text} of a subnet is not an IPv4 range in CIDR notation."
        raise bad_request(message, code="InvalidCIDRNotation") from error


def store_all(world: World, network: Record, inline: list[Body]) -> None:
    """Sets a network's subnets. If one is invalid, reverts all changes."""
    before = of(world, network.id)
    names = {body["name"].lower() for body in inline}
    try:
        for gone in (subnet for subnet in before if subnet.id.name.lower() not in names):
            KIND.check_delete(world, gone)
            remove(world, gone)
        for body in inline:
            resource = network.id.child("subnets", body["name"])
            existing = world.store.get(resource)
            record = world.store.get(resource) or Record(resource, {})
            _store(world, network, record, {"properties": body["properties"]}, existing)
    except ArmError:
        for made in of(world, network.id):
            world.store.remove(made.id)
        for subnet in before:
            world.store.put(subnet)
        raise


def _store(world: World, network: Record, record: Record, body: Body, existing: Record | None) -> None:
    wanted = prefix(body["properties"])
    _check_range(world, network, record.id, wanted)
    if existing and prefix(existing.properties) != wanted and next(resource_types.uses(world, record.id), None):
        message = f"Subnet {record.id.name} is in use and cannot be updated."
        raise bad_request(message, code="InUseSubnetCannotBeUpdated")
    for name, kind in _NAMED.items():
        if id_ := body["properties"].get(name, {}).get("id"):
            _rules.referenced(world, record.id, id_, kind, f"properties.{name}.id", network.body["location"])
    _rules.save(world, record, body)


def _check_range(world: World, network: Record, subnet: ResourceId, wanted: IPv4Network) -> None:
    ranges = [ip_network(text) for text in network.properties["addressSpace"]["addressPrefixes"]]
    if not any(isinstance(each, IPv4Network) and wanted.subnet_of(each) for each in ranges):
        message = f"Subnet '{subnet.name}' is not valid in virtual network '{network.id.name}'."
        raise bad_request(message, code="NetcfgInvalidSubnet")
    for other in of(world, network.id):
        if other.id != subnet and prefix(other.properties).overlaps(wanted):
            message = (
                f"Subnet '{subnet.name}' is not valid because its IP address range overlaps with that of an existing "
                f"subnet in virtual network '{network.id.name}'."
            )
            raise bad_request(message, code="NetcfgSubnetRangesOverlap")


def free_addresses(world: World, subnet: Record, but: ResourceId | None = None) -> int:
    """Returns the number of free addresses, including those that `but` uses."""
    usable = max(0, prefix(subnet.properties).num_addresses - _KEPT)
    return usable - sum(use.addresses for use in resource_types.uses(world, subnet.id, but))


def take_addresses(world: World, subnet: Record, number: int = 1) -> list[str]:
    """Returns the first free addresses. Raises ArmError if there are too few (text: Azure/AKS#2119)."""
    if free_addresses(world, subnet) < number:
        message = (
            f"Subnet {subnet.id.name} with address prefix {prefix(subnet.properties)} does not have enough capacity "
            f"for {number} IP addresses."
        )
        raise bad_request(message, code="SubnetIsFull")
    taken = {use.address for use in resource_types.uses(world, subnet.id)}
    return list(islice((each for each in _addresses(subnet) if each not in taken), number))


def _addresses(subnet: Record) -> Iterator[str]:
    found = prefix(subnet.properties)
    return (str(found[index]) for index in range(_FIRST, found.num_addresses - 1))
