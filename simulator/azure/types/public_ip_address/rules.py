"""Public addresses, from a range for documentation (RFC 5737). They are not reachable."""

from __future__ import annotations

from ipaddress import IPv4Network

from simulator.azure import resource_types
from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request
from simulator.azure.ids import ResourceId, parse_id
from simulator.azure.kind import Kind
from simulator.azure.store import Body, Record
from simulator.azure.subscription import guid
from simulator.azure.types import _rules

TYPE = "Microsoft.Network/publicIPAddresses"
_RANGE = IPv4Network("203.0.113.0/24")


class PublicIpAddresses(Kind):
    """Error texts: Microsoft's page on resources in use, and user reports of `PublicIPAddressInUse`."""

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        _rules.check_region(world, record, body, existing)
        if existing is None:
            taken = {other.facts["address"] for other in world.store.all(TYPE)}
            record.facts["address"] = next(str(each) for each in _RANGE.hosts() if str(each) not in taken)
        _rules.save(world, record, body)

    def check_delete(self, world: World, record: Record) -> None:
        for use in resource_types.uses(world, record.id):
            message = (
                f"Public IP address {record.id.text} can not be deleted since it is still allocated to resource "
                f"{use.by}. In order to delete the public IP, disassociate/detach the Public IP address from the "
                "resource. To learn how to do this, see aka.ms/deletepublicip."
            )
            raise bad_request(message, code="PublicIPAddressCannotBeDeleted")

    def outputs(self, world: World, record: Record) -> Body:
        outputs: Body = {
            "ipAddress": record.facts["address"],
            "ipTags": [],
            "resourceGuid": guid(record.id.text, "guid"),
        }
        for use in resource_types.uses(world, record.id):
            gateway = "/natgateways/" in use.by.lower()
            outputs["natGateway" if gateway else "ipConfiguration"] = {"id": use.by}
        return outputs


KIND = PublicIpAddresses()


def check_free(world: World, by: ResourceId, text: str, path: str, location: str) -> None:
    """Raises ArmError if the address does not exist or another resource uses it."""
    address = _rules.referenced(world, by, text, TYPE, path, location)
    for use in resource_types.uses(world, address.id, but=by):
        message = (
            f"Resource {by.text} is referencing public IP address {address.id.text} that is already allocated to "
            f"resource {parse_id(use.by).text}."
        )
        raise bad_request(message, code="PublicIPAddressInUse")
