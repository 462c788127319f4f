"""Network interfaces of machines."""

from __future__ import annotations

from simulator.azure import resource_types
from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request
from simulator.azure.ids import ResourceId, parse_id
from simulator.azure.kind import Kind, Use
from simulator.azure.store import Body, Record
from simulator.azure.subscription import guid
from simulator.azure.types import _rules
from simulator.azure.types.subnet.rules import TYPE as SUBNETS
from simulator.azure.types.subnet.rules import take_addresses

TYPE = "Microsoft.Network/networkInterfaces"
_ADDRESS = "address"


class NetworkInterfaces(Kind):
    """Interfaces with one address in a subnet. Error text for an interface in use: user reports of `NicInUse`."""

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        _rules.check_region(world, record, body, existing)
        text, path = _subnet(body["properties"]), "properties.ipConfigurations.properties.subnet.id"
        subnet = _rules.referenced(world, record.id, text, SUBNETS, path, body["location"])
        if existing is None or parse_id(_subnet(existing.properties)) != subnet.id:
            (record.facts[_ADDRESS],) = take_addresses(world, subnet)
        body["properties"]["ipConfigurations"][0]["properties"]["subnet"] = {"id": text}
        _rules.save(world, record, body)

    def check_delete(self, world: World, record: Record) -> None:
        for use in resource_types.uses(world, record.id):
            message = (
                f"Network Interface {record.id.text} is used by existing resource {use.by}. In order to delete the "
                "network interface, it must be dissociated from the resource. To learn more, see aka.ms/deletenic."
            )
            raise bad_request(message, code="NicInUse")

    def uses(self, world: World, record: Record) -> list[Use]:
        return [Use(_subnet(record.properties), _part(record), 1, record.facts[_ADDRESS])]

    def outputs(self, world: World, record: Record) -> Body:
        (configuration,) = record.properties["ipConfigurations"]
        address = {"privateIPAddress": record.facts[_ADDRESS], "provisioningState": "Succeeded"}
        shown = {
            "ipConfigurations": [
                {**configuration, "id": _part(record), "properties": configuration["properties"] | address}
            ],
            "resourceGuid": guid(record.id.text, "guid"),
            "dnsSettings": {"dnsServers": [], "appliedDnsServers": []},
            "vnetEncryptionSupported": False,
        }
        machine = next(resource_types.uses(world, record.id), None)
        return shown | ({"virtualMachine": {"id": machine.by}} if machine else {})


KIND = NetworkInterfaces()


def address(interface: Record) -> str:
    return str(interface.facts[_ADDRESS])


def network_of(interface: Record) -> ResourceId:
    return parse_id(_subnet(interface.properties)).parent


def _subnet(properties: Body) -> str:
    (configuration,) = properties["ipConfigurations"]
    text: str = configuration["properties"]["subnet"]["id"]
    return text


def _part(record: Record) -> str:
    (configuration,) = record.properties["ipConfigurations"]
    return f"{record.id.text}/ipConfigurations/{configuration['name']}"
