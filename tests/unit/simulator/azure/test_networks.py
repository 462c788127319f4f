"""Virtual networks and what is in them: subnets, the way out, machines, private endpoints and zones."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.azure.ids import parse_id
from simulator.azure.types.virtual_machine.rules import principals
from tests.support import networks as net
from tests.support.arm import GROUP, Arm
from tests.support.azure_plugin import GROUP as GROUP_TOKEN
from tests.support.azure_plugin import AzurePlugin
from tests.support.blob_account import ACCOUNT, IDENTITY, account_body

Body = dict[str, Any]
BLOB, DFS, IMAGES = net.endpoint("blob"), net.endpoint("dfs"), net.endpoint("images")
ZONE = net.zone("privatelink.blob.core.windows.net")
IMAGE_ZONE = net.zone("privatelink.azurecr.io")


@pytest.fixture
def network(arm: Arm) -> Arm:
    """A network with two subnets, one of which goes out by a gateway with an address."""
    net.make_network(arm)
    return arm


# -- ranges ------------------------------------------------------------------------------------------------------------


def test_a_network_shows_its_subnets(network: Arm) -> None:
    subnets = network.get(net.NETWORK)["properties"]["subnets"]
    assert [(each["name"], each["properties"]["addressPrefix"]) for each in subnets] == [
        ("endpoints", "10.16.16.0/24"),
        ("nodes", "10.16.0.0/20"),
    ]


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


# -- the way out -------------------------------------------------------------------------------------------------------


def test_a_gateway_its_address_and_its_subnets_know_each_other(network: Arm) -> None:
    assert network.get(net.GATEWAY)["properties"]["subnets"] == [{"id": net.NODES}]
    address = network.get(net.ADDRESS)["properties"]
    assert address["natGateway"] == {"id": net.GATEWAY}
    assert address["ipAddress"].startswith("203.0.113.")


def test_what_is_used_shows_by_what_and_can_be_deleted_once_it_is_used_no_more(network: Arm) -> None:
    net.make(network, net.INTERFACE, net.interface_body())
    shown = network.get(net.ENDPOINTS)["properties"]["ipConfigurations"]
    assert shown == [{"id": f"{net.INTERFACE}/ipConfigurations/only"}]
    net.make(network, net.NODES, net.subnet_body("10.16.0.0/20"))
    for path in (net.INTERFACE, net.ENDPOINTS, net.GATEWAY, net.ADDRESS):
        assert network.call("DELETE", path).status_code == 200


def test_a_subnet_gives_away_all_addresses_but_five(network: Arm) -> None:
    net.make(network, net.ENDPOINTS, net.subnet_body("10.16.16.0/29"))
    made = [net.make(network, f"{net.INTERFACE}-{number}", net.interface_body()) for number in range(3)]
    shown = [each["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"] for each in made]
    assert shown == ["10.16.16.4", "10.16.16.5", "10.16.16.6"]
    assert network.refusal(network.put(net.INTERFACE, net.interface_body())) == (
        400,
        "SubnetIsFull",
        "Subnet endpoints with address prefix 10.16.16.0/29 does not have enough capacity for 1 IP addresses.",
    )


# -- the plugin --------------------------------------------------------------------------------------------------------


def test_a_table_is_written_as_it_is_shown(network: Arm) -> None:
    table = net.make(network, net.ROUTES, net.routes_body())
    (route,) = table["properties"]["routes"]
    route |= {"etag": 'W/"0"'}
    route["properties"] |= {"hasBgpOverride": False}
    shown = net.make(network, net.ROUTES, table)
    assert shown["properties"]["routes"][0]["type"] == route["type"] == "Microsoft.Network/routeTables/routes"
    assert net.make(network, f"{net.ROUTES}/routes/out", route) == shown["properties"]["routes"][0]


def test_routes_are_added_to_a_table_and_replaced(arm: Arm) -> None:
    arm.put(GROUP, {"location": "eastus"})
    out: dict[str, Any] = {"addressPrefix": "0.0.0.0/0", "nextHopType": "Internet"}
    arm.put(net.ROUTES, {"location": "eastus"})
    firewall = {"nextHopIpAddress": "10.0.0.4"}
    changes: tuple[tuple[str, Any, int], ...] = (("Internet", {}, 201), ("VirtualAppliance", firewall, 200))
    for hop, more, status in changes:  # Routes_CreateOrUpdate, azure-rest-api-specs
        answer = arm.put(f"{net.ROUTES}/routes/out", {"properties": out | {"nextHopType": hop} | more})
        assert (answer.status_code, answer.json()["properties"]["nextHopType"]) == (status, hop)
    assert arm.refusal(arm.put(f"{net.ROUTES}/routes/in", []))[0] == 400
    (route,) = arm.get(net.ROUTES)["properties"]["routes"]
    assert (route["name"], route["properties"]["nextHopType"]) == ("out", "VirtualAppliance")
    assert arm.get(f"{net.ROUTES}/routes/OUT") == route
    assert arm.get(f"{net.ROUTES}/routes") == {"value": [route]}
    assert [arm.call("DELETE", f"{net.ROUTES}/routes/out").status_code for _ in range(2)] == [200, 204]
    assert arm.get(net.ROUTES)["properties"]["routes"] == []


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


# -- the machine to log in at and its bastion --------------------------------------------------------------------------


@pytest.fixture
def place(network: Arm) -> Arm:
    """A network with an interface for a machine, and a subnet and an address for a bastion."""
    net.make(network, net.GATEWAY, net.gateway_body())
    net.make(network, net.BASTION_SUBNET, net.subnet_body("10.16.17.0/26"))
    net.make(network, net.INTERFACE, net.interface_body())
    return network


def test_a_bastion_takes_an_address(place: Arm) -> None:
    assert net.make(place, net.BASTION, net.bastion_body(enableTunneling=True))["properties"]["dnsName"]
    part = f"{net.BASTION}/bastionHostIpConfigurations/only"
    assert place.get(net.ADDRESS)["properties"]["ipConfiguration"] == {"id": part}


def test_a_machine_and_its_interface_know_each_other(place: Arm) -> None:
    net.make(place, net.MACHINE, net.machine_body())
    assert place.get(net.INTERFACE)["properties"]["virtualMachine"] == {"id": net.MACHINE}
    for path in (net.MACHINE, net.INTERFACE):
        assert place.call("DELETE", path).status_code == 200


def test_what_runs_at_the_first_boot_is_not_shown(place: Arm) -> None:
    body = net.machine_body()
    body["properties"]["osProfile"]["customData"] = "I2Nsb3VkLWNvbmZpZw=="
    shown = net.make(place, net.MACHINE, body)["properties"]["osProfile"]
    assert shown["computerName"] == "jump"
    assert "customData" not in shown


def test_a_machine_signs_in_as_itself_and_by_identities_of_ones_own(place: Arm) -> None:
    own = net.make(place, IDENTITY, {"location": "eastus"})["properties"]["principalId"]
    both = {"type": "SystemAssigned, UserAssigned", "userAssignedIdentities": {IDENTITY: {}}}
    shown = net.make(place, net.MACHINE, net.machine_body() | {"identity": both})["identity"]
    assert shown["userAssignedIdentities"][IDENTITY]["principalId"] == own
    world = place.server.world
    machine = world.store.get(parse_id(net.MACHINE))
    assert machine is not None
    assert principals(world, machine) == [shown["principalId"], own]


def test_a_machine_of_the_same_name_is_another_one(place: Arm) -> None:
    first = net.make(place, net.MACHINE, net.machine_body())
    place.call("DELETE", net.MACHINE)
    second = net.make(place, net.MACHINE, net.machine_body())
    assert first["identity"]["principalId"] != second["identity"]["principalId"]


def test_a_machine_without_a_disk_in_its_request_has_azures(place: Arm) -> None:
    """As in a recorded run of azure-native's tests (tests/contract/recordings/azure_native.yaml, run `machine`)."""
    body = net.machine_body()
    del body["properties"]["storageProfile"]["osDisk"]
    shown = net.make(place, net.MACHINE, body)["properties"]["storageProfile"]["osDisk"]
    assert (shown["createOption"], shown["caching"], shown["deleteOption"]) == ("FromImage", "ReadWrite", "Detach")


# -- private endpoints and zones ---------------------------------------------------------------------------------------


@pytest.fixture
def services(arm: Arm) -> Arm:
    """A network, an account and a registry."""
    net.make_network(arm)
    net.make(arm, ACCOUNT, account_body(publicNetworkAccess="Disabled"))
    net.make(arm, net.REGISTRY, net.REGISTRY_BODY)
    return arm


def test_an_endpoint_has_an_address_for_each_name_of_its_group(services: Arm) -> None:
    shown = [
        net.make(services, path, net.endpoint_body(service, group))["properties"]["customDnsConfigs"]
        for path, service, group in ((BLOB, ACCOUNT, "blob"), (DFS, ACCOUNT, "dfs"), (IMAGES, net.REGISTRY, "registry"))
    ]
    found = [(each["fqdn"], *each["ipAddresses"]) for configs in shown for each in configs]
    assert found == [
        ("models.blob.core.windows.net", "10.16.16.4"),
        ("models.dfs.core.windows.net", "10.16.16.5"),
        ("aiimages.eastus.data.azurecr.io", "10.16.16.6"),
        ("aiimages.azurecr.io", "10.16.16.7"),
    ]


def test_a_service_shows_who_leads_to_it(services: Arm) -> None:
    net.make(services, BLOB, net.endpoint_body(ACCOUNT, "blob"))
    net.make(services, IMAGES, net.endpoint_body(net.REGISTRY, "registry"))
    (connection,) = services.get(ACCOUNT)["properties"]["privateEndpointConnections"]
    assert connection["name"].startswith("models.")
    assert connection["properties"]["privateEndpoint"] == {"id": BLOB}
    approved = {"status": "Approved", "description": "Auto-Approved"}
    assert connection["properties"]["privateLinkServiceConnectionState"] == approved | {"actionRequired": "None"}
    (connection,) = services.get(net.REGISTRY)["properties"]["privateEndpointConnections"]
    assert connection["properties"]["privateLinkServiceConnectionState"] == approved | {"actionsRequired": "None"}


def test_an_endpoint_of_a_service_that_is_gone_leads_nowhere(services: Arm) -> None:
    net.make(services, IMAGES, net.endpoint_body(net.REGISTRY, "registry"))
    assert services.call("DELETE", net.REGISTRY).status_code == 200
    net.make(services, net.REGISTRY, net.REGISTRY_BODY)  # another one of the same name
    shown = services.get(IMAGES)["properties"]
    (connection,) = shown["privateLinkServiceConnections"]
    assert connection["properties"]["privateLinkServiceConnectionState"]["status"] == "Disconnected"
    assert shown["customDnsConfigs"] == services.get(net.REGISTRY)["properties"]["privateEndpointConnections"] == []


# -- registries --------------------------------------------------------------------------------------------------------


def test_data_endpoints_are_shown(services: Arm) -> None:
    body = {**net.REGISTRY_BODY, "properties": {"dataEndpointEnabled": True, "publicNetworkAccess": "Disabled"}}
    shown = net.make(services, net.REGISTRY, body)["properties"]
    assert shown["dataEndpointHostNames"] == ["aiimages.eastus.data.azurecr.io"]


# -- zones -------------------------------------------------------------------------------------------------------------


def test_a_zone_group_writes_the_records_of_its_endpoint(services: Arm) -> None:
    net.make(services, IMAGE_ZONE, {"location": "global"})
    net.make(services, IMAGES, net.endpoint_body(net.REGISTRY, "registry"))
    group = f"{IMAGES}/privateDnsZoneGroups/default"
    (config,) = net.make(services, group, net.group_body(IMAGE_ZONE))["properties"]["privateDnsZoneConfigs"]
    written = [(each["fqdn"], *each["ipAddresses"]) for each in config["properties"]["recordSets"]]
    assert written == [
        ("aiimages.eastus.data.privatelink.azurecr.io", "10.16.16.4"),
        ("aiimages.privatelink.azurecr.io", "10.16.16.5"),
    ]
    assert services.get(IMAGE_ZONE)["properties"]["numberOfRecordSets"] == 3
    services.call("DELETE", IMAGES)
    assert services.get(IMAGE_ZONE)["properties"]["numberOfRecordSets"] == 1


def test_links_go_with_their_network(services: Arm) -> None:
    net.make(services, ZONE, {"location": "global"})
    net.make(services, net.link(ZONE), net.link_body())
    assert services.call("DELETE", net.NETWORK).status_code == 200
    assert services.call("GET", net.link(ZONE)).status_code == 404
    assert services.call("DELETE", ZONE).status_code == 200
