"""Bastions, an access path to machines without public addresses. Connections are not simulated.

Rules: Azure's page "About Bastion configuration settings" (name of the subnet, subnet of at least /26, sku Standard for
tunnels). Error codes and texts are guesses.
"""

from __future__ import annotations

from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request
from simulator.azure.kind import Kind, Use, etag
from simulator.azure.store import Body, Record
from simulator.azure.subscription import guid
from simulator.azure.types import _rules
from simulator.azure.types.public_ip_address import rules as addresses
from simulator.azure.types.subnet import rules as subnets

TYPE = "Microsoft.Network/bastionHosts"
SUBNET = "AzureBastionSubnet"
_LONGEST_PREFIX = 26


class BastionHosts(Kind):
    """Bastions, each in a dedicated subnet with a public address."""

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        _rules.check_region(world, record, body, existing)
        where, path = body["location"], "properties.ipConfigurations.properties"
        configuration = _configuration(body["properties"])["properties"]
        text = configuration["subnet"]["id"]
        subnet = _rules.referenced(world, record.id, text, subnets.TYPE, f"{path}.subnet.id", where)
        if subnet.id.name != SUBNET or subnets.prefix(subnet.properties).prefixlen > _LONGEST_PREFIX:
            message = f"A bastion needs a subnet named {SUBNET}, of /{_LONGEST_PREFIX} or larger, not {subnet.id.text}."
            raise bad_request(message, code="InvalidRequestFormat")
        addresses.check_free(
            world, record.id, configuration["publicIPAddress"]["id"], f"{path}.publicIPAddress.id", where
        )
        if body["properties"]["enableTunneling"] and body["sku"]["name"] == "Basic":
            message = "Tunneling (native clients) needs a bastion of the sku Standard."
            raise bad_request(message, code="InvalidRequestFormat")
        _rules.save(world, record, body)

    def uses(self, world: World, record: Record) -> list[Use]:
        configuration = _configuration(record.properties)
        part = f"{record.id.text}/bastionHostIpConfigurations/{configuration['name']}"
        subnet, address = (
            configuration["properties"]["subnet"]["id"],
            configuration["properties"]["publicIPAddress"]["id"],
        )
        return [Use(subnet, part, record.properties["scaleUnits"]), Use(address, part)]

    def outputs(self, world: World, record: Record) -> Body:
        configuration = _configuration(record.properties)
        part = f"{record.id.text}/bastionHostIpConfigurations/{configuration['name']}"
        own = {"id": part, "etag": etag(record), "type": f"{TYPE}/bastionHostIpConfigurations"}
        shown = {**configuration, **own, "properties": configuration["properties"] | {"provisioningState": "Succeeded"}}
        return {"dnsName": f"bst-{guid(record.id.text, 'dns')}.bastion.azure.com", "ipConfigurations": [shown]}


KIND = BastionHosts()


def _configuration(properties: Body) -> Body:
    (found,) = properties["ipConfigurations"]
    configuration: Body = found
    return configuration
