"""Links of virtual networks to private DNS zones. A linked network resolves the names in the zone.

A network can be linked to only one of the zones with the same name. Error text: MicrosoftDocs/azure-aks-docs#212.
"""

from __future__ import annotations

from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request
from simulator.azure.ids import ResourceId
from simulator.azure.kind import Kind
from simulator.azure.names import LINKS
from simulator.azure.store import Body, Record
from simulator.azure.types import _rules

TYPE = LINKS
NETWORKS = "Microsoft.Network/virtualNetworks"


class VirtualNetworkLinks(Kind):
    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        body["location"] = _rules.global_location(record.id, body)
        _rules.check_fixed(record.id, body, existing)
        text = body["properties"]["virtualNetwork"]["id"]
        network = _rules.referenced(world, record.id, text, NETWORKS, "properties.virtualNetwork.id")
        check_alone(world, record.id, network.id)
        body["properties"]["virtualNetworkLinkState"] = "Completed"
        _rules.save(world, record, body)


KIND = VirtualNetworkLinks()


def of_network(world: World, network: ResourceId) -> list[Record]:
    wanted = network.key
    return [link for link in world.store.all(TYPE) if link.properties["virtualNetwork"]["id"].lower() == wanted]


def check_alone(world: World, link: ResourceId, network: ResourceId) -> None:
    """Raises ArmError if the network is already linked to a zone of this name."""
    name = link.parent.name
    for other in of_network(world, network):
        if other.id != link and other.id.parent.name.lower() == name.lower():
            message = (
                "A virtual network cannot be linked to multiple zones with overlapping namespaces. You tried to link "
                f"virtual network with '{name}' and '{other.id.parent.name}' zones."
            )
            raise bad_request(message, code="BadRequest")
