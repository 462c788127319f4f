"""Private endpoints: an Azure service's addresses in a subnet.

Shapes: Azure/azure-cli's recording `test_network_private_endpoint_private_dns_zone_group`. Azure approves connections
automatically if endpoint and service have the same owner. Error codes and texts are guesses (for a wrong
tier, from Service Bus).
"""

from __future__ import annotations

from collections.abc import Sequence

from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request
from simulator.azure.faults import CREATED
from simulator.azure.ids import ResourceId, parse_id
from simulator.azure.kind import Kind, Use
from simulator.azure.resource_types import kinds
from simulator.azure.store import Body, Record
from simulator.azure.subscription import guid
from simulator.azure.types import _rules
from simulator.azure.types.subnet.rules import TYPE as SUBNETS
from simulator.azure.types.subnet.rules import take_addresses

TYPE = "Microsoft.Network/privateEndpoints"
ZONE_GROUPS = f"{TYPE}/privateDnsZoneGroups"
_APPROVED = {"status": "Approved", "description": "Auto-Approved"}
_BORN = "born"
"""The key of the service's creation time in an endpoint's facts, to detect a later service of the same name."""


class PrivateEndpoints(Kind):
    """Endpoints. Each has an address for each DNS name of the service's group."""

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        _rules.check_region(world, record, body, existing)
        properties = body["properties"]
        text, where = properties["subnet"]["id"], body["location"]
        subnet = _rules.referenced(world, record.id, text, SUBNETS, "properties.subnet.id", where)
        target, names = _served(world, record.id, properties)
        if existing is None:
            record.facts |= {"addresses": take_addresses(world, subnet, len(names)), _BORN: target.facts.get(CREATED)}
        properties["subnet"] = {"id": text}
        _rules.save(world, record, body)

    def uses(self, world: World, record: Record) -> list[Use]:
        part = f"{_interface(record)}/ipConfigurations/privateEndpointIpConfig"
        subnet = record.properties["subnet"]["id"]
        taken: list[str] = record.facts["addresses"]
        return [Use(subnet, f"{part}.{index}", 1, address) for index, address in enumerate(taken, 1)]

    def outputs(self, world: World, record: Record) -> Body:
        given = _connection(record.properties)
        state = _APPROVED | {"actionsRequired": "None"} if target(world, record) else {"status": "Disconnected"}
        outputs = {"provisioningState": "Succeeded", "privateLinkServiceConnectionState": state}
        connection = {
            **given,
            "id": f"{record.id.text}/privateLinkServiceConnections/{given['name']}",
            "properties": given["properties"] | outputs,
        }
        return {
            "customDnsConfigs": [{"fqdn": name, "ipAddresses": [address]} for name, address in served(world, record)],
            "manualPrivateLinkServiceConnections": [],
            "networkInterfaces": [{"id": _interface(record)}],
            "privateLinkServiceConnections": [connection],
        }


KIND = PrivateEndpoints()


def target(world: World, endpoint: Record) -> Record | None:
    """Returns an endpoint's service, or None if the service was deleted."""
    given = _connection(endpoint.properties)
    found = world.store.get(parse_id(given["properties"]["privateLinkServiceId"]))
    return found if found and found.facts.get(CREATED) == endpoint.facts[_BORN] else None


def served(world: World, endpoint: Record) -> list[tuple[str, str]]:
    found = target(world, endpoint)
    if found is None:
        return []
    given = _connection(endpoint.properties)
    (group,) = given["properties"]["groupIds"]
    names = kinds()[found.id.type.lower()].names(world, found)[group]
    return list(zip(names, endpoint.facts["addresses"], strict=True))


def of_service(world: World, service: ResourceId) -> list[Record]:
    found = ((endpoint, target(world, endpoint)) for endpoint in world.store.all(TYPE))
    return [endpoint for endpoint, to in found if to and to.id == service]


def connections(world: World, service: ResourceId, required: str) -> list[Body]:
    """Returns a service's `privateEndpointConnections`. `required` is the property name for required actions."""
    return [
        {
            "id": f"{service.text}/privateEndpointConnections/{name}",
            "name": name,
            "type": f"{service.type}/privateEndpointConnections",
            "properties": {
                "provisioningState": "Succeeded",
                "privateEndpoint": {"id": endpoint.id.text},
                "privateLinkServiceConnectionState": _APPROVED | {required: "None"},
            },
        }
        for endpoint in of_service(world, service)
        if (name := f"{service.name}.{guid(endpoint.id.text, 'connection')}")
    ]


def _connection(properties: Body) -> Body:
    (given,) = properties["privateLinkServiceConnections"]
    found: Body = given
    return found


def _interface(endpoint: Record) -> str:
    """Returns the id of the network interface, which is not simulated."""
    own = endpoint.properties.get("customNetworkInterfaceName")
    name = own or f"{endpoint.id.name}.nic.{guid(endpoint.id.text, 'nic')}"
    return f"{endpoint.id.scope}/providers/Microsoft.Network/networkInterfaces/{name}"


def _served(world: World, endpoint: ResourceId, properties: Body) -> tuple[Record, Sequence[str]]:
    given = _connection(properties)
    text, (group,) = given["properties"]["privateLinkServiceId"], given["properties"]["groupIds"]
    try:
        found = world.store.get(parse_id(text))
    except ValueError:
        found = None
    if found is None:
        raise _rules.missing(endpoint, text)
    kind = kinds().get(found.id.type.lower())
    names = kind.names(world, found) if kind else {}
    if group not in names:
        message = (
            f"Call to {found.id.type} failed. Error message: The group id {group} of private endpoints is not known, "
            f"or not simulated. Known: {', '.join(names) or 'none'}."
        )
        raise bad_request(message, code="InvalidGroupId")
    if kind and (why := kind.unlinkable(found)):
        raise bad_request(f"Call to {found.id.type} failed. Error message: {why}", code="PrivateEndpointInvalidSku")
    return found, names[group]
