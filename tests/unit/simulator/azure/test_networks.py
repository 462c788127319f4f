"""Virtual networks, subnets, the way out of them, and what Azure refuses of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import networks as net
from tests.support.arm import GROUP, Arm
from tests.support.azure_plugin import GROUP as GROUP_TOKEN
from tests.support.azure_plugin import AzurePlugin

Body = dict[str, Any]


@pytest.fixture
def network(arm: Arm) -> Arm:
    """A network with two subnets, one of which goes out by a gateway with an address."""
    net.make_network(arm)
    return arm


def refusal(arm: Arm, path: str, body: Body) -> tuple[int, str, str]:
    return arm.refusal(arm.put(path, body))


def undeletable(arm: Arm, path: str) -> tuple[int, str, str]:
    """The refusal; it is still there."""
    found = arm.refusal(arm.call("DELETE", path))
    assert arm.call("GET", path).status_code == 200
    return found


# -- ranges ------------------------------------------------------------------------------------------------------------


def test_a_network_shows_its_subnets(network: Arm) -> None:
    subnets = network.get(net.NETWORK)["properties"]["subnets"]
    assert [(each["name"], each["properties"]["addressPrefix"]) for each in subnets] == [
        ("endpoints", "10.16.16.0/24"),
        ("nodes", "10.16.0.0/20"),
    ]


@pytest.mark.parametrize(
    ("prefix", "code", "part"),
    [
        ("10.16.0.1/16", "InvalidCIDRNotation", "the address prefix should be 10.16.0.0/16."),
        ("home", "InvalidAddressPrefixFormat", "The address prefix home is invalid."),
        ("10.17.0.0/16", "InUsePrefixCannotBeDeleted", "IpPrefix 10.16.16.0/24 on Vnet ai has active allocations"),
    ],
)
def test_ranges_that_a_network_cannot_have(network: Arm, prefix: str, code: str, part: str) -> None:
    status, found, message = refusal(network, net.NETWORK, net.network_body(prefix))
    assert (status, found) == (400, code)
    assert part in message


@pytest.mark.parametrize(
    ("prefix", "code", "message"),
    [
        ("10.17.0.0/24", "NetcfgInvalidSubnet", "Subnet 'more' is not valid in virtual network 'ai'."),
        (
            "10.16.15.0/24",
            "NetcfgSubnetRangesOverlap",
            "Subnet 'more' is not valid because its IP address range overlaps with that of an existing subnet in "
            "virtual network 'ai'.",
        ),
        (
            "10.16.32.1/24",
            "InvalidCIDRNotation",
            "The address prefix 10.16.32.1/24 of a subnet is not an IPv4 range in CIDR notation.",
        ),
    ],
)
def test_ranges_that_a_subnet_cannot_have(network: Arm, prefix: str, code: str, message: str) -> None:
    assert refusal(network, f"{net.NETWORK}/subnets/more", net.subnet_body(prefix)) == (400, code, message)


def test_a_range_of_15_bits_is_as_good_as_any(arm: Arm) -> None:
    net.make(arm, GROUP, {"location": "eastus"})
    net.make(arm, net.NETWORK, net.network_body("10.0.0.0/15"))
    assert net.make(arm, net.NODES, net.subnet_body("10.1.0.0/16"))["properties"]["addressPrefix"] == "10.1.0.0/16"


# -- subnets inline ----------------------------------------------------------------------------------------------------


def inline(*subnets: tuple[str, str]) -> Body:
    body = net.network_body()
    named = [{"name": name, **net.subnet_body(prefix)} for name, prefix in subnets]
    return body | {"properties": body["properties"] | {"subnets": named}}


def names(arm: Arm) -> list[str]:
    return [subnet["name"] for subnet in arm.get(net.NETWORK)["properties"]["subnets"]]


def test_a_put_without_subnets_keeps_them_and_one_that_names_others_removes_them(network: Arm) -> None:
    net.make(network, net.NETWORK, net.network_body() | {"tags": {"a": "b"}})
    assert names(network) == ["endpoints", "nodes"]
    net.make(network, net.NETWORK, inline(("nodes", "10.16.0.0/20"), ("more", "10.16.32.0/24")))
    assert names(network) == ["more", "nodes"]
    net.make(network, net.NETWORK, inline())
    assert names(network) == []


def test_of_inline_subnets_all_are_made_or_none(network: Arm) -> None:
    body = inline(("nodes", "10.16.0.0/20"), ("more", "10.16.0.0/24"))
    assert refusal(network, net.NETWORK, body)[1] == "NetcfgSubnetRangesOverlap"
    assert names(network) == ["endpoints", "nodes"]


# -- the way out -------------------------------------------------------------------------------------------------------


def test_a_gateway_its_address_and_its_subnets_know_each_other(network: Arm) -> None:
    assert network.get(net.GATEWAY)["properties"]["subnets"] == [{"id": net.NODES}]
    address = network.get(net.ADDRESS)["properties"]
    assert address["natGateway"] == {"id": net.GATEWAY}
    assert address["ipAddress"].startswith("203.0.113.")


def test_what_is_in_use_stays(network: Arm) -> None:
    assert undeletable(network, net.ADDRESS) == (
        400,
        "PublicIPAddressCannotBeDeleted",
        f"Public IP address {net.ADDRESS} can not be deleted since it is still allocated to resource {net.GATEWAY}. In "
        "order to delete the public IP, disassociate/detach the Public IP address from the resource. To learn how to "
        "do this, see aka.ms/deletepublicip.",
    )
    status, code, message = undeletable(network, net.GATEWAY)
    assert (status, code) == (400, "InUseNatGatewayCannotBeDeleted")
    assert net.NODES in message
    net.make(network, net.NODES, net.subnet_body("10.16.0.0/20"))
    for path in (net.GATEWAY, net.ADDRESS):
        assert network.call("DELETE", path).status_code == 200


def test_an_address_is_given_to_one(network: Arm) -> None:
    other = f"{net.GATEWAY}-2"
    assert refusal(network, other, net.gateway_body(net.ADDRESS)) == (
        400,
        "PublicIPAddressInUse",
        f"Resource {other} is referencing public IP address {net.ADDRESS} that is already allocated to resource "
        f"{net.GATEWAY}.",
    )


@pytest.mark.parametrize("place", ["eastus", "westus3"])
def test_what_is_pointed_at_must_be_there_and_in_the_same_region(network: Arm, place: str) -> None:
    other = f"{net.GATEWAY}-2"
    if place == "westus3":
        net.make(network, other, net.gateway_body() | {"location": place})
    _, code, message = refusal(network, net.NODES, net.subnet_body("10.16.0.0/20", natGateway={"id": other}))
    assert code == "InvalidResourceReference"
    assert message == (
        f"Resource {other} referenced by resource {net.NODES} was not found. Please make sure that the referenced "
        "resource exists, and that both resources are in the same region."
    )


def test_what_is_no_id_is_told_apart(network: Arm) -> None:
    body = net.subnet_body("10.16.0.0/20", natGateway={"id": "out"})
    status, code, message = refusal(network, net.NODES, body)
    assert (status, code) == (400, "LinkedInvalidPropertyId")
    assert "Property id 'out' at path 'properties.natGateway.id' is invalid." in message


def test_addresses_are_standard_and_static(network: Arm) -> None:
    other = f"{net.ADDRESS}-2"
    basic = net.address_body() | {"sku": {"name": "Basic"}}
    assert "'Basic'. Allowed: Standard." in refusal(network, other, basic)[2]
    dynamic = net.placed({"publicIPAllocationMethod": "Dynamic"}, sku={"name": "Standard"})
    assert "'Dynamic'. Allowed: Static." in refusal(network, other, dynamic)[2]


# -- subnets in use ----------------------------------------------------------------------------------------------------


def test_a_subnet_in_use_stays_as_it_is_and_so_does_its_network(network: Arm) -> None:
    net.make(network, net.INTERFACE, net.interface_body())
    part = f"{net.INTERFACE}/ipConfigurations/only"
    expected = (
        400,
        "InUseSubnetCannotBeDeleted",
        f"Subnet endpoints is in use by {part} and cannot be deleted. In order to delete the subnet, delete all the "
        "resources within the subnet. See aka.ms/deletesubnet.",
    )
    assert undeletable(network, net.ENDPOINTS) == expected
    assert undeletable(network, net.NETWORK) == expected
    assert refusal(network, net.NETWORK, inline())[:2] == expected[:2]
    assert refusal(network, net.ENDPOINTS, net.subnet_body("10.16.64.0/24")) == (
        400,
        "InUseSubnetCannotBeUpdated",
        "Subnet endpoints is in use and cannot be updated.",
    )
    assert network.get(net.ENDPOINTS)["properties"]["ipConfigurations"] == [{"id": part}]
    for path in (net.INTERFACE, net.ENDPOINTS):
        assert network.call("DELETE", path).status_code == 200


def test_a_subnet_gives_away_all_addresses_but_five(network: Arm) -> None:
    net.make(network, net.ENDPOINTS, net.subnet_body("10.16.16.0/29"))
    made = [net.make(network, f"{net.INTERFACE}-{number}", net.interface_body()) for number in range(3)]
    shown = [each["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"] for each in made]
    assert shown == ["10.16.16.4", "10.16.16.5", "10.16.16.6"]
    assert refusal(network, net.INTERFACE, net.interface_body()) == (
        400,
        "SubnetIsFull",
        "Subnet endpoints with address prefix 10.16.16.0/29 does not have enough capacity for 1 IP addresses.",
    )


# -- the plugin --------------------------------------------------------------------------------------------------------


APPLIANCE = (
    "MissingNextHopIpAddress",
    "NextHopIpAddress cannot be Null or Empty in route more when NextHopType is VirtualAppliance.",
)
CONFLICT = ("RouteConflict", "Route: more conflicts with Route: out. Routes cannot have the same AddressPrefix.")


@pytest.mark.parametrize(
    ("route", "why"),
    [
        ({"addressPrefix": "10.0.0.0/8", "nextHopType": "VirtualAppliance"}, APPLIANCE),
        ({"addressPrefix": "10.0.0.0/8", "nextHopType": "VirtualAppliance", "nextHopIpAddress": ""}, APPLIANCE),
        ({"addressPrefix": "0.0.0.0/0", "nextHopType": "Internet"}, CONFLICT),
    ],
)
def test_routes_that_a_table_cannot_have(network: Arm, route: Body, why: tuple[str, str]) -> None:
    table = net.make(network, net.ROUTES, net.routes_body())
    both = net.routes_body()
    both["properties"]["routes"].append({"name": "more", "properties": route})
    assert refusal(network, net.ROUTES, both) == (400, *why)
    assert refusal(network, f"{net.ROUTES}/routes/more", {"properties": route}) == (400, *why)
    assert network.get(net.ROUTES) == table


def test_a_table_is_written_as_it_is_shown(network: Arm) -> None:
    table = net.make(network, net.ROUTES, net.routes_body())
    (route,) = table["properties"]["routes"]
    route |= {"etag": 'W/"0"'}
    route["properties"] |= {"hasBgpOverride": False}
    shown = net.make(network, net.ROUTES, table)
    assert shown["properties"]["routes"][0]["type"] == route["type"] == "Microsoft.Network/routeTables/routes"
    assert net.make(network, f"{net.ROUTES}/routes/out", route) == shown["properties"]["routes"][0]


def test_the_plugin_writes_parts_without_their_properties(plugin: AzurePlugin, arm: Arm) -> None:
    """As Pulumi's SDK has subnets inline, and every other part of a network."""
    plugin.create(GROUP_TOKEN, {"resourceGroupName": "rg", "location": "eastus"}, name="rg")
    asked: Body = {"name": "nodes", "addressPrefix": "10.16.0.0/20"}
    where = {"resourceGroupName": "rg", "location": "eastus", "virtualNetworkName": "ai"}
    inputs = {**where, "addressSpace": {"addressPrefixes": ["10.16.0.0/16"]}, "subnets": [asked]}
    checked, problems = plugin.check("azure-native:network:VirtualNetwork", inputs)
    assert (checked["azureApiVersion"], problems) == ("2024-05-01", [])
    _, shown = plugin.create("azure-native:network:VirtualNetwork", inputs)
    assert shown["subnets"][0].items() >= {**asked, "id": net.NODES, "provisioningState": "Succeeded"}.items()
    assert arm.get(net.NODES)["properties"]["addressPrefix"] == "10.16.0.0/20"
    inputs["subnets"] = [{**asked, "adressPrefix": "10.16.0.0/20"}]
    _, problems = plugin.check("azure-native:network:VirtualNetwork", inputs)
    assert (
        "unknown property 'subnets[0].adressPrefix' (or not simulated); did you mean 'subnets[0].addressPrefix'?"
        in problems
    )


def test_a_network_in_another_region_is_another_one(plugin: AzurePlugin) -> None:
    old = {"resourceGroupName": "rg", "location": "eastus", "virtualNetworkName": "ai"}
    found = plugin.diff("azure-native:network:VirtualNetwork", old, {**old, "location": "westus3"})
    assert list(found.replaces) == ["location"]
