"""Virtual networks.

Source for PUT without subnets: Microsoft's post "Azure Virtual Network now supports updates without subnet property".
Source for the deletion of links: Azure's page on links of virtual networks to private DNS zones.
"""

from __future__ import annotations

from ipaddress import IPv4Network, ip_network

from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request
from simulator.azure.kind import Kind
from simulator.azure.operations import remove
from simulator.azure.store import Body, Record
from simulator.azure.subscription import guid
from simulator.azure.types import _rules
from simulator.azure.types.subnet import rules as subnets
from simulator.azure.types.virtual_network_link import rules as links

TYPE = "Microsoft.Network/virtualNetworks"


class VirtualNetworks(Kind):
    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        _rules.check_region(world, record, body, existing)
        inline: list[Body] | None = body["properties"].pop("subnets", None)
        ranges = [_range(text) for text in body["properties"]["addressSpace"]["addressPrefixes"]]
        if inline is None:
            _check_inside(world, record, ranges)
        body["properties"].pop("enableVmProtection", None)  # sent by SDKs, but not in Azure's responses
        body["properties"]["provisioningState"] = "Succeeded"
        record.body = body
        if inline is not None:
            subnets.store_all(world, record, inline)
        world.store.put(record)  # last: if killed before, the next start removes the subnets

    def check_delete(self, world: World, record: Record) -> None:
        for subnet in subnets.of(world, record.id):
            subnets.KIND.check_delete(world, subnet)

    def removed(self, world: World, record: Record) -> None:
        for link in links.of_network(world, record.id):
            remove(world, link)

    def outputs(self, world: World, record: Record) -> Body:
        shown = [subnets.KIND.view(world, subnet) for subnet in subnets.of(world, record.id)]
        return {"resourceGuid": guid(record.id.text, "guid"), "subnets": shown, "virtualNetworkPeerings": []}


KIND = VirtualNetworks()


def _range(text: str) -> IPv4Network:
    """Raises ArmError for host bits (code: hashicorp's SDK for Azure)."""
    try:
        found = ip_network(text, strict=False)
    except ValueError as error:
        raise bad_request(f"The address prefix {text} is invalid.", code="InvalidAddressPrefixFormat") from error
    if not isinstance(found, IPv4Network):
        raise bad_request(f"The address prefix {text} is not IPv4, and others are not simulated.")
    if str(found) != text:
        message = (
            f"The address prefix {text} has an invalid CIDR notation. For the given prefix length, the address prefix "
            f"should be {found}."
        )
        raise bad_request(message, code="InvalidCIDRNotation")
    return found


def _check_inside(world: World, record: Record, ranges: list[IPv4Network]) -> None:
    """Raises ArmError (text: a guess) if a subnet is outside the new ranges."""
    for subnet in subnets.of(world, record.id):
        prefix = subnets.prefix(subnet.properties)
        if not any(prefix.subnet_of(each) for each in ranges):
            message = f"IpPrefix {prefix} on Vnet {record.id.name} has active allocations and cannot be deleted."
            raise bad_request(message, code="InUsePrefixCannotBeDeleted")
