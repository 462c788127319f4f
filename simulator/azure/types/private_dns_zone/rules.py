"""Private DNS zones.

Error text for a zone in use: learntocloud/networking-lab#8. Limits: Azure's page on limits of DNS.
"""

from __future__ import annotations

from simulator.azure import names
from simulator.azure.arm_world import World
from simulator.azure.errors import conflict
from simulator.azure.ids import ResourceId
from simulator.azure.kind import Kind
from simulator.azure.store import Body, Record
from simulator.azure.types import _rules

TYPE = "Microsoft.Network/privateDnsZones"
_LIMITS = {
    "maxNumberOfRecordSets": 25000,
    "maxNumberOfVirtualNetworkLinks": 1000,
    "maxNumberOfVirtualNetworkLinksWithRegistration": 100,
}


class PrivateDnsZones(Kind):
    """Zones. Private endpoints and clusters create records. Linked networks resolve them (`names.py`)."""

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        body["location"] = _rules.global_location(record.id, body)
        body.setdefault("properties", {})
        _rules.save(world, record, body)

    def check_delete(self, world: World, record: Record) -> None:
        if links := links_of(world, record.id):
            ids = ", ".join(f"'{TYPE}/{record.id.name}/virtualNetworkLinks/{link.id.name}'" for link in links)
            message = (
                "Cannot delete resource while nested resources exist. Some existing nested resource IDs include: "
                f"{ids}. Please delete all nested resources before deleting this resource."
            )
            raise conflict(message, code="CannotDeleteResource")

    def outputs(self, world: World, record: Record) -> Body:
        links = links_of(world, record.id)
        registering = [link for link in links if link.properties["registrationEnabled"]]
        return _LIMITS | {
            "numberOfRecordSets": 1 + len({found.name for found in names.records(world, record.id)}),  # 1: SOA record
            "numberOfVirtualNetworkLinks": len(links),
            "numberOfVirtualNetworkLinksWithRegistration": len(registering),
        }


KIND = PrivateDnsZones()


def links_of(world: World, zone: ResourceId) -> list[Record]:
    return [record for record in world.store.within(zone) if record.id.type.lower() == names.LINKS.lower()]
