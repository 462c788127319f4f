from __future__ import annotations

from typing import Any

import pytest

from simulator.azure.ids import parse_id
from simulator.azure.types.virtual_machine.rules import principals
from tests.support import networks as net
from tests.support.arm import Arm
from tests.support.blob_account import ACCOUNT, IDENTITY, account_body

Body = dict[str, Any]
BLOB, DFS, IMAGES = net.endpoint("blob"), net.endpoint("dfs"), net.endpoint("images")
ZONE = net.zone("privatelink.blob.core.windows.net")
IMAGE_ZONE = net.zone("privatelink.azurecr.io")


@pytest.fixture
def network(arm: Arm) -> Arm:
    net.make_network(arm)
    return arm


# -- subnets inline ----------------------------------------------------------------------------------------------------


def inline(*subnets: tuple[str, str]) -> Body:
    body = net.network_body()
    named = [{"name": name, **net.subnet_body(prefix)} for name, prefix in subnets]
    return body | {"properties": body["properties"] | {"subnets": named}}


def names(arm: Arm) -> list[str]:
    return [subnet["name"] for subnet in arm.get(net.NETWORK)["properties"]["subnets"]]


def test_a_put_with_inline_subnets_replaces_all_subnets(network: Arm) -> None:
    net.make(network, net.NETWORK, net.network_body() | {"tags": {"a": "b"}})
    assert names(network) == ["endpoints", "nodes"]
    net.make(network, net.NETWORK, inline(("nodes", "10.16.0.0/20"), ("more", "10.16.32.0/24")))
    assert names(network) == ["more", "nodes"]
    net.make(network, net.NETWORK, inline())
    assert names(network) == []


# -- outbound traffic and addresses ------------------------------------------------------------------------------------


def test_a_gateway_references_its_subnets_and_its_address(network: Arm) -> None:
    assert network.get(net.GATEWAY)["properties"]["subnets"] == [{"id": net.NODES}]
    address = network.get(net.ADDRESS)["properties"]
    assert address["natGateway"] == {"id": net.GATEWAY}
    assert address["ipAddress"].startswith("203.0.113.")


def test_shows_uses_and_allows_deletion_without_them(network: Arm) -> None:
    net.make(network, net.INTERFACE, net.interface_body())
    shown = network.get(net.ENDPOINTS)["properties"]["ipConfigurations"]
    assert shown == [{"id": f"{net.INTERFACE}/ipConfigurations/only"}]
    net.make(network, net.NODES, net.subnet_body("10.16.0.0/20"))
    for path in (net.INTERFACE, net.ENDPOINTS, net.GATEWAY, net.ADDRESS):
        assert network.call("DELETE", path).status_code == 200


def test_a_subnet_reserves_five_addresses(network: Arm) -> None:
    net.make(network, net.ENDPOINTS, net.subnet_body("10.16.16.0/29"))
    made = [net.make(network, f"{net.INTERFACE}-{number}", net.interface_body()) for number in range(3)]
    shown = [each["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"] for each in made]
    assert shown == ["10.16.16.4", "10.16.16.5", "10.16.16.6"]
    assert network.refusal(network.put(net.INTERFACE, net.interface_body())) == (
        400,
        "SubnetIsFull",
        "Subnet endpoints with address prefix 10.16.16.0/29 does not have enough capacity for 1 IP addresses.",
    )


# -- routes ------------------------------------------------------------------------------------------------------------


def test_accepts_its_own_response_as_a_route_table(network: Arm) -> None:
    table = net.make(network, net.ROUTES, net.routes_body())
    (route,) = table["properties"]["routes"]
    route |= {"etag": 'W/"0"'}
    route["properties"] |= {"hasBgpOverride": False}
    shown = net.make(network, net.ROUTES, table)
    assert shown["properties"]["routes"][0]["type"] == route["type"] == "Microsoft.Network/routeTables/routes"
    assert net.make(network, f"{net.ROUTES}/routes/out", route) == shown["properties"]["routes"][0]


def test_adds_and_replaces_routes_of_a_table(group: Arm) -> None:
    out: dict[str, Any] = {"addressPrefix": "0.0.0.0/0", "nextHopType": "Internet"}
    group.put(net.ROUTES, {"location": "eastus"})
    firewall = {"nextHopIpAddress": "10.0.0.4"}
    changes: tuple[tuple[str, Any, int], ...] = (("Internet", {}, 201), ("VirtualAppliance", firewall, 200))
    for hop, more, status in changes:  # Routes_CreateOrUpdate, azure-rest-api-specs
        answer = group.put(f"{net.ROUTES}/routes/out", {"properties": out | {"nextHopType": hop} | more})
        assert (answer.status_code, answer.json()["properties"]["nextHopType"]) == (status, hop)
    assert group.refusal(group.put(f"{net.ROUTES}/routes/in", []))[0] == 400
    (route,) = group.get(net.ROUTES)["properties"]["routes"]
    assert (route["name"], route["properties"]["nextHopType"]) == ("out", "VirtualAppliance")
    assert group.get(f"{net.ROUTES}/routes/OUT") == route
    assert group.get(f"{net.ROUTES}/routes") == {"value": [route]}
    assert [group.call("DELETE", f"{net.ROUTES}/routes/out").status_code for _ in range(2)] == [200, 204]
    assert group.get(net.ROUTES)["properties"]["routes"] == []


# -- machines and bastions ---------------------------------------------------------------------------------------------


@pytest.fixture
def bastion_network(network: Arm) -> Arm:
    net.make(network, net.GATEWAY, net.gateway_body())
    net.make(network, net.BASTION_SUBNET, net.subnet_body("10.16.17.0/26"))
    net.make(network, net.INTERFACE, net.interface_body())
    return network


def test_a_bastion_uses_its_address(bastion_network: Arm) -> None:
    assert net.make(bastion_network, net.BASTION, net.bastion_body(enableTunneling=True))["properties"]["dnsName"]
    part = f"{net.BASTION}/bastionHostIpConfigurations/only"
    assert bastion_network.get(net.ADDRESS)["properties"]["ipConfiguration"] == {"id": part}


def test_an_interface_references_its_machine(bastion_network: Arm) -> None:
    net.make(bastion_network, net.MACHINE, net.machine_body())
    assert bastion_network.get(net.INTERFACE)["properties"]["virtualMachine"] == {"id": net.MACHINE}
    for path in (net.MACHINE, net.INTERFACE):
        assert bastion_network.call("DELETE", path).status_code == 200


def test_does_not_show_custom_data(bastion_network: Arm) -> None:
    body = net.machine_body()
    body["properties"]["osProfile"]["customData"] = "I2Nsb3VkLWNvbmZpZw=="
    shown = net.make(bastion_network, net.MACHINE, body)["properties"]["osProfile"]
    assert shown["computerName"] == "jump"
    assert "customData" not in shown


def test_a_machine_has_system_and_user_assigned_identities(bastion_network: Arm) -> None:
    own = net.make(bastion_network, IDENTITY, {"location": "eastus"})["properties"]["principalId"]
    both = {"type": "SystemAssigned, UserAssigned", "userAssignedIdentities": {IDENTITY: {}}}
    shown = net.make(bastion_network, net.MACHINE, net.machine_body() | {"identity": both})["identity"]
    assert shown["userAssignedIdentities"][IDENTITY]["principalId"] == own
    world = bastion_network.server.world
    machine = world.store.get(parse_id(net.MACHINE))
    assert machine is not None
    assert principals(world, machine) == [shown["principalId"], own]


def test_a_recreated_machine_has_a_new_identity(bastion_network: Arm) -> None:
    first = net.make(bastion_network, net.MACHINE, net.machine_body())
    bastion_network.call("DELETE", net.MACHINE)
    second = net.make(bastion_network, net.MACHINE, net.machine_body())
    assert first["identity"]["principalId"] != second["identity"]["principalId"]


# -- private endpoints and zones ---------------------------------------------------------------------------------------


@pytest.fixture
def services(arm: Arm) -> Arm:
    net.make_network(arm)
    net.make(arm, ACCOUNT, account_body(publicNetworkAccess="Disabled"))
    net.make(arm, net.REGISTRY, net.REGISTRY_BODY)
    return arm


def test_an_endpoint_has_an_address_for_each_name(services: Arm) -> None:
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


def test_a_service_shows_its_endpoints(services: Arm) -> None:
    net.make(services, BLOB, net.endpoint_body(ACCOUNT, "blob"))
    net.make(services, IMAGES, net.endpoint_body(net.REGISTRY, "registry"))
    (connection,) = services.get(ACCOUNT)["properties"]["privateEndpointConnections"]
    assert connection["name"].startswith("models.")
    assert connection["properties"]["privateEndpoint"] == {"id": BLOB}
    approved = {"status": "Approved", "description": "Auto-Approved"}
    assert connection["properties"]["privateLinkServiceConnectionState"] == approved | {"actionRequired": "None"}
    (connection,) = services.get(net.REGISTRY)["properties"]["privateEndpointConnections"]
    assert connection["properties"]["privateLinkServiceConnectionState"] == approved | {"actionsRequired": "None"}


def test_an_endpoint_of_a_deleted_service_is_disconnected(services: Arm) -> None:
    net.make(services, IMAGES, net.endpoint_body(net.REGISTRY, "registry"))
    assert services.call("DELETE", net.REGISTRY).status_code == 200
    net.make(services, net.REGISTRY, net.REGISTRY_BODY)  # another one of the same name
    shown = services.get(IMAGES)["properties"]
    (connection,) = shown["privateLinkServiceConnections"]
    assert connection["properties"]["privateLinkServiceConnectionState"]["status"] == "Disconnected"
    assert shown["customDnsConfigs"] == services.get(net.REGISTRY)["properties"]["privateEndpointConnections"] == []


def test_shows_data_endpoints_of_a_registry(services: Arm) -> None:
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


def test_deletes_links_with_their_network(services: Arm) -> None:
    net.make(services, ZONE, {"location": "global"})
    net.make(services, net.link(ZONE), net.link_body())
    assert services.call("DELETE", net.NETWORK).status_code == 200
    assert services.call("GET", net.link(ZONE)).status_code == 404
    assert services.call("DELETE", ZONE).status_code == 200
