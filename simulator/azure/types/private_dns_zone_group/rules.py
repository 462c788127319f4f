"""Zone groups of private endpoints: the zones that receive an endpoint's records.

An endpoint has at most one zone group. Error text: pulumi/pulumi-azure-native#2179. The error code is a guess.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request
from simulator.azure.ids import parse_id
from simulator.azure.kind import Kind, ZoneRecord
from simulator.azure.names import private_name
from simulator.azure.store import Body, Record
from simulator.azure.types import _rules
from simulator.azure.types.private_dns_zone.rules import TYPE as ZONES
from simulator.azure.types.private_endpoint import rules as endpoints

TYPE = endpoints.ZONE_GROUPS
_TTL_S = 10


class PrivateDnsZoneGroups(Kind):
    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        for other in world.store.all(TYPE):
            if other.id.parent == record.id.parent and other.id != record.id:
                message = "Cannot create more than one private dns zone groups in the private endpoint."
                raise bad_request(message, code="BadRequest")
        for config in body["properties"]["privateDnsZoneConfigs"]:
            path = "properties.privateDnsZoneConfigs.properties.privateDnsZoneId"
            _rules.referenced(world, record.id, config["properties"]["privateDnsZoneId"], ZONES, path)
        _rules.save(world, record, body)

    def zone_records(self, world: World, record: Record) -> Iterator[ZoneRecord]:
        endpoint = world.store.get(record.id.parent)
        service = endpoints.target(world, endpoint) if endpoint else None
        for config in record.properties["privateDnsZoneConfigs"]:
            zone = parse_id(config["properties"]["privateDnsZoneId"])
            for name, address in endpoints.served(world, endpoint) if endpoint and service else ():
                if own := private_name(name, zone.name):
                    yield ZoneRecord(zone, own, address, service.id if service else record.id)

    def outputs(self, world: World, record: Record) -> Body:
        written = list(self.zone_records(world, record))
        configs = []
        for config in record.properties["privateDnsZoneConfigs"]:
            zone = parse_id(config["properties"]["privateDnsZoneId"])
            sets = [_shown(each) for each in written if each.zone == zone]
            configs.append({**config, "properties": config["properties"] | {"recordSets": sets}})
        return {"privateDnsZoneConfigs": configs}


KIND = PrivateDnsZoneGroups()


def _shown(found: ZoneRecord) -> Body:
    return {
        "fqdn": f"{found.name}.{found.zone.name}",
        "ipAddresses": [found.address],
        "provisioningState": "Succeeded",
        "recordSetName": found.name,
        "recordType": "A",
        "ttl": _TTL_S,
    }
