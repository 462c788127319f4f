"""NAT gateways, the outbound connection of subnets that reference them."""

from __future__ import annotations

from simulator.azure import resource_types
from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request
from simulator.azure.kind import Kind, Use
from simulator.azure.store import Body, Record
from simulator.azure.subscription import guid
from simulator.azure.types import _rules
from simulator.azure.types.public_ip_address import rules as addresses

TYPE = "Microsoft.Network/natGateways"


class NatGateways(Kind):
    """Gateways with their addresses. The error text for a gateway in use is a guess. Several clients have the code."""

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        _rules.check_region(world, record, body, existing)
        for text in public_addresses(body["properties"]):
            path = "properties.publicIpAddresses"
            addresses.check_free(world, record.id, text, path, body["location"])
        _rules.save(world, record, body)

    def check_delete(self, world: World, record: Record) -> None:
        if users := [use.by for use in resource_types.uses(world, record.id)]:
            message = (
                f"Nat gateway {record.id.text} cannot be deleted because it is in use by the following resources: "
                f"{', '.join(users)}. In order to delete the Nat gateway, remove the association with the resource(s)."
            )
            raise bad_request(message, code="InUseNatGatewayCannotBeDeleted")

    def uses(self, world: World, record: Record) -> list[Use]:
        return [Use(text, record.id.text) for text in public_addresses(record.properties)]

    def outputs(self, world: World, record: Record) -> Body:
        subnets = [{"id": use.by} for use in resource_types.uses(world, record.id)]
        return {"resourceGuid": guid(record.id.text, "guid")} | ({"subnets": subnets} if subnets else {})


KIND = NatGateways()


def public_addresses(properties: Body) -> list[str]:
    return [address["id"] for address in properties.get("publicIpAddresses", [])]
