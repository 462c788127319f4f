"""Private endpoints of accounts and registries, private DNS zones, and what Azure refuses of them."""

from __future__ import annotations

import pytest

from tests.support import networks as net
from tests.support.arm import Arm
from tests.support.blob_account import ACCOUNT, account_body

BLOB, DFS, IMAGES = net.endpoint("blob"), net.endpoint("dfs"), net.endpoint("images")
ZONE = net.zone("privatelink.blob.core.windows.net")
IMAGE_ZONE = net.zone("privatelink.azurecr.io")


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


def test_an_endpoint_keeps_its_subnet(services: Arm) -> None:
    net.make(services, BLOB, net.endpoint_body(ACCOUNT, "blob"))
    status, code, message = services.refusal(services.call("DELETE", net.ENDPOINTS))
    assert (status, code) == (400, "InUseSubnetCannotBeDeleted")
    assert "/networkInterfaces/blob.nic." in message
    moved = net.endpoint_body(ACCOUNT, "blob", net.NODES)
    assert services.refusal(services.put(BLOB, moved))[1] == "PropertyChangeNotAllowed"


@pytest.mark.parametrize(
    ("service", "group", "code", "part"),
    [
        (ACCOUNT, "blobs", "InvalidGroupId", "The group id blobs of private endpoints is not known"),
        (net.NETWORK, "blob", "InvalidGroupId", "Known: none."),
        (f"{ACCOUNT}x", "blob", "InvalidResourceReference", f"Resource {ACCOUNT}x referenced by resource {BLOB}"),
        ("models", "blob", "InvalidResourceReference", "Resource models referenced by resource"),
    ],
)
def test_endpoints_that_lead_nowhere(services: Arm, service: str, group: str, code: str, part: str) -> None:
    status, found, message = services.refusal(services.put(BLOB, net.endpoint_body(service, group)))
    assert (status, found) == (400, code)
    assert part in message


# -- registries --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", ["Basic", "Standard"])
def test_only_a_premium_registry_is_private(services: Arm, tier: str) -> None:
    other, body = f"{net.REGISTRY}2", {**net.REGISTRY_BODY, "sku": {"name": tier}}
    public = services.put(other, {**body, "properties": {"publicNetworkAccess": "Disabled"}})
    assert services.refusal(public) == (
        400,
        "DisablingPublicNetworkAccessNotSupported",
        f"Disabling public network access is not supported for the SKU {tier}. For more information, please visit "
        "https://aka.ms/acr/private-link.",
    )
    net.make(services, other, body)
    _, code, message = services.refusal(services.put(IMAGES, net.endpoint_body(other, "registry")))
    assert code == "PrivateEndpointInvalidSku"
    assert f"Private endpoints are not supported for the SKU {tier}." in message


def test_a_registry_with_an_endpoint_stays_premium(services: Arm) -> None:
    net.make(services, IMAGES, net.endpoint_body(net.REGISTRY, "registry"))
    lower = services.put(net.REGISTRY, {**net.REGISTRY_BODY, "sku": {"name": "Standard"}})
    assert services.refusal(lower)[:2] == (400, "PrivateEndpointNotSupported")


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


def test_an_endpoint_has_one_zone_group(services: Arm) -> None:
    net.make(services, ZONE, {"location": "global"})
    net.make(services, BLOB, net.endpoint_body(ACCOUNT, "blob"))
    net.make(services, f"{BLOB}/privateDnsZoneGroups/default", net.group_body(ZONE))
    answer = services.put(f"{BLOB}/privateDnsZoneGroups/more", net.group_body(ZONE))
    message = "Cannot create more than one private dns zone groups in the private endpoint."
    assert services.refusal(answer) == (400, "BadRequest", message)


def test_a_zone_group_of_a_zone_that_is_not_there(services: Arm) -> None:
    net.make(services, BLOB, net.endpoint_body(ACCOUNT, "blob"))
    answer = services.put(f"{BLOB}/privateDnsZoneGroups/default", net.group_body(ZONE))
    assert services.refusal(answer)[1] == "InvalidResourceReference"


def test_a_zone_is_in_no_region(services: Arm) -> None:
    status, code, message = services.refusal(services.put(ZONE, {"location": "eastus"}))
    assert (status, code) == (400, "LocationNotAvailableForResourceType")
    assert message.endswith("List of available regions for the resource type is 'global'.")


def test_a_zone_with_links_stays(services: Arm) -> None:
    net.make(services, ZONE, {"location": "global"})
    assert net.make(services, net.link(ZONE), net.link_body())["properties"]["virtualNetworkLinkState"] == "Completed"
    assert services.refusal(services.call("DELETE", ZONE)) == (
        409,
        "CannotDeleteResource",
        "Cannot delete resource while nested resources exist. Some existing nested resource IDs include: "
        "'Microsoft.Network/privateDnsZones/privatelink.blob.core.windows.net/virtualNetworkLinks/ai'. Please delete "
        "all nested resources before deleting this resource.",
    )
    for path in (net.link(ZONE), ZONE):
        assert services.call("DELETE", path).status_code == 200


def test_a_network_has_one_zone_of_a_name(services: Arm) -> None:
    other = ZONE.replace("/rg/", "/other/")
    net.make(services, other.partition("/providers/")[0], {"location": "eastus"})
    for zone in (ZONE, other):
        net.make(services, zone, {"location": "global"})
    net.make(services, net.link(ZONE), net.link_body())
    name = "privatelink.blob.core.windows.net"
    assert services.refusal(services.put(net.link(other), net.link_body())) == (
        400,
        "BadRequest",
        "A virtual network cannot be linked to multiple zones with overlapping namespaces. You tried to link virtual "
        f"network with '{name}' and '{name}' zones.",
    )


def test_links_go_with_their_network(services: Arm) -> None:
    net.make(services, ZONE, {"location": "global"})
    net.make(services, net.link(ZONE), net.link_body())
    assert services.call("DELETE", net.NETWORK).status_code == 200
    assert services.call("GET", net.link(ZONE)).status_code == 404
    assert services.call("DELETE", ZONE).status_code == 200
