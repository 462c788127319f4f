from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from components.azure import roles
from components.preflight.azure import check_subscription
from components.preflight.existing import check_existing
from config.rules.network_answers import SUFFICIENT
from config.schema.cluster import ClusterSettings
from config.schema.models import Settings
from config.schema.network import NetworkSettings
from config.schema.pools import PoolSettings
from config.schema.storage import StorageSettings
from tests.support.case_files import case_table
from tests.support.lookups import HUB, NETWORKS, ZONES, Answer, answer, hub, links
from tests.support.mocked_azure import PRINCIPAL, SUBSCRIPTION, Azure
from tests.support.mocks import deploy
from tests.support.settings import settings_with
from tests.support.sizes import H100

NODES, ENDPOINTS = f"{HUB}/subnets/nodes", f"{HUB}/subnets/endpoints"
MINE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net/providers/Microsoft.ManagedIdentity/userAssignedIdentities/me"
ZONE, REGISTRIES = f"{ZONES}/privatelink.eastus.azmk8s.io", f"{ZONES}/privatelink.azurecr.io"
BLOBS = f"{ZONES}/privatelink.blob.core.windows.net"
OTHERS = ZONES.replace("/net/", "/other/") + "/privatelink.azurecr.io"
LINKS = "azurecr.io/virtualNetworkLinks"
READER = "/subscriptions/a/providers/Microsoft.Authorization/roleDefinitions/acdd72a7-3385-48ef-bd42-f606fba81ae7"
pytestmark = pytest.mark.usefixtures("azure")


def stack(nodes: int = 2, identity: str | None = None, *, containers: bool = False, **network: Any) -> Settings:
    there = {"id": HUB, "nodeSubnet": NODES, "endpointSubnet": ENDPOINTS, "private": True, "outbound": "loadBalancer"}
    return settings_with(
        pools={"gpu": PoolSettings(vm_sku=H100, count=nodes)},
        network=NetworkSettings.model_validate({**there, **network}),
        cluster=ClusterSettings(identity=identity),
        storage=StorageSettings.model_validate({"containers": {"data": {}} if containers else {}}),
    )


def refused(settings: Settings, *, cluster: bool = False) -> str:
    pools = {"system": {"vmSize": "Standard_D8ads_v5", "count": 3, "vnetSubnetID": NODES}}
    profiles = {"apiServerAccessProfile": {"enablePrivateCluster": True}}
    there = Azure(cluster=cluster, pools=pools if cluster else {}, profiles=profiles, identities={"me"})
    try:
        deploy(lambda: check_subscription(settings, check_existing(settings), {}), there)
    except pulumi.RunError as error:
        return str(error)
    return ""


def asked(azure: Mapping[str, Answer]) -> list[str]:
    return [part for part in azure if part.startswith("asked") and "Microsoft.Network" in part]


def test_accepts_a_valid_network(azure: dict[str, Answer], warnings: list[str]) -> None:
    assert refused(stack()) == ""
    assert not warnings
    assert [part for part in asked(azure) if f"{HUB}?api-version=2024-05-01" in part]


def test_does_not_check_the_network_of_an_existing_cluster(azure: dict[str, Answer]) -> None:
    refused(stack(nodes=4), cluster=True)
    assert not asked(azure)


def test_does_not_check_a_network_that_the_stack_creates(azure: dict[str, Answer]) -> None:
    network = NetworkSettings.model_validate({"addressSpace": "10.0.0.0/16"})
    refused(settings_with(pools={"gpu": PoolSettings(vm_sku=H100)}, network=network))
    assert [part.partition("?")[0].rpartition("/")[2] for part in asked(azure)] == ["Microsoft.Network"]


@case_table(__file__, "networks", hub=HUB)
def test_rejects_a_network_that_aks_would_reject(
    there: dict[str, Any], settings: dict[str, Any], message: str, azure: dict[str, Answer]
) -> None:
    azure["virtualNetworks/hub"] = answer(hub(**there))
    found = refused(stack(**settings))
    assert message in found if message else found == ""


TABLE = f"{NETWORKS}/routeTables/out"
ROUTED: dict[str, Any] = {"outbound": "userDefinedRouting"}


def routes(hop: str, prefix: str = "0.0.0.0/0") -> dict[str, Any]:
    return {"properties": {"routes": [{"name": "out", "properties": {"addressPrefix": prefix, "nextHopType": hop}}]}}


@case_table(__file__, "routes", nodes=NODES)
def test_user_defined_routes_need_an_outbound_route(
    table: dict[str, Any] | None, message: str, azure: dict[str, Answer]
) -> None:
    azure["virtualNetworks/hub"] = answer(hub() if table is None else hub(routeTable={"id": TABLE}))
    azure["routeTables/out"] = answer(routes(**table) if table else {"properties": {}})
    found = refused(stack(**ROUTED))
    assert message in found if message else found == ""


def test_warns_of_authorized_ranges_without_the_firewall(azure: dict[str, Answer], warnings: list[str]) -> None:
    azure["virtualNetworks/hub"] = answer(hub(routeTable={"id": TABLE}))
    azure["routeTables/out"] = answer(routes("VirtualAppliance"))
    chosen = stack(**ROUTED, private=False)
    cluster = ClusterSettings.model_validate({"authorizedIpRanges": ["137.117.106.88/29"]})
    assert refused(chosen.model_copy(update={"cluster": cluster})) == ""
    assert any("must contain the public address of the firewall" in warning for warning in warnings)


@pytest.mark.parametrize(("ranges", "count"), [(("8.8.8.8/32",), 1), ((), 0)])
def test_warns_of_authorized_ranges_without_the_users_gateway(
    ranges: tuple[str, ...], count: int, azure: dict[str, Answer], warnings: list[str]
) -> None:
    azure["virtualNetworks/hub"] = answer(hub(natGateway={"id": "/nat"}))
    there = stack(outbound="natGateway", private=False)
    assert refused(there.model_copy(update={"cluster": ClusterSettings(authorized_ip_ranges=ranges)})) == ""
    assert len([text for text in warnings if "az network nat gateway show --ids /nat" in text]) == count


def test_rejects_a_network_that_does_not_exist(azure: dict[str, Answer]) -> None:
    azure["virtualNetworks/hub"] = answer({"error": {"code": "ResourceNotFound"}}, 404)
    assert f"network.id does not exist in Azure: {HUB}" in refused(stack())


def test_warns_of_a_network_that_cannot_be_read(azure: dict[str, Answer], warnings: list[str]) -> None:
    azure["virtualNetworks/hub"] = answer({"error": {"code": "AuthorizationFailed"}}, 403)
    assert refused(stack()) == ""
    assert [text for text in warnings if "the network hub could not be looked up in Azure: 403" in text]


ENFORCED: dict[str, Any] = {"privateEndpointNetworkPolicies": "Enabled", "networkSecurityGroup": {"id": "/nsg"}}


@pytest.mark.parametrize(("there", "subnet"), [(hub(**ENFORCED), NODES), (hub(endpoints=ENFORCED), ENDPOINTS)])
def test_warns_of_policies_of_private_endpoints(
    there: dict[str, Any], subnet: str, azure: dict[str, Answer], warnings: list[str]
) -> None:
    azure["virtualNetworks/hub"] = answer(there)
    assert refused(stack()) == ""
    assert f"--ids {subnet} --private-endpoint-network-policies Disabled" in warnings[0]


def test_warns_of_custom_dns_servers(azure: dict[str, Answer], warnings: list[str]) -> None:
    azure["virtualNetworks/hub"] = answer(hub(dns=["10.9.0.4", "10.9.0.5"]))
    assert refused(stack()) == ""
    (message,) = warnings
    assert "network.id uses custom DNS servers (10.9.0.4, 10.9.0.5)" in message
    assert "168.63.129.16" in message
    assert "include privatelink.eastus.azmk8s.io" in message
    assert refused(stack(private=False)) == ""
    assert len(warnings) == 1, "the name of a public cluster is public"


def test_a_missing_link_is_a_warning_with_custom_dns_servers(azure: dict[str, Answer], warnings: list[str]) -> None:
    azure["virtualNetworkLinks"] = answer(links(HUB.replace("hub", "other")))
    assert "azurecr.io (network.zones) is not linked to network.id" in refused(stack(zones=[REGISTRIES]))
    azure["virtualNetworks/hub"] = answer(hub(dns=["10.9.0.4"]))
    assert refused(stack(zones=[REGISTRIES])) == ""
    assert "azurecr.io (network.zones) is not linked to network.id" in "".join(warnings)


def test_rejects_another_linked_zone_with_two_fixes(azure: dict[str, Answer]) -> None:
    azure["privateDnsZones?"] = answer({"value": [{"name": "privatelink.azurecr.io", "id": OTHERS}]})
    message = refused(stack())
    assert f"add {OTHERS} to network.zones" in message
    assert "vnet delete --resource-group other --zone-name privatelink.azurecr.io --name link" in message
    azure[LINKS] = answer(links(HUB.replace("hub", "spoke")))
    assert refused(stack()) == ""


def test_accepts_a_linked_blob_zone_without_containers(azure: dict[str, Answer]) -> None:
    blobs = OTHERS.replace("azurecr.io", "blob.core.windows.net")
    azure["privateDnsZones?"] = answer({"value": [{"name": "privatelink.blob.core.windows.net", "id": blobs}]})
    assert refused(stack()) == ""
    assert "linked to another zone with the name privatelink.blob.core.windows.net" in refused(stack(containers=True))


def test_the_users_zones_must_be_linked_to_the_network(azure: dict[str, Answer]) -> None:
    """AKS links the API server's zone itself."""
    zones = [ZONE, REGISTRIES]
    assert refused(stack(zones=zones)) == ""
    azure["virtualNetworkLinks"] = answer(links())
    message = refused(stack(zones=zones))
    assert (
        f"--zone-name privatelink.azurecr.io --name nodes --registration-enabled false --virtual-network {HUB}"
        in message
    )
    assert "azmk8s.io (network.zones) is not linked" not in message
    azure["virtualNetworkLinks"] = answer({}, 404)
    assert f"network.zones has a zone that does not exist in Azure: {ZONE}" in refused(stack(zones=zones))


def test_rejects_zones_of_another_subscription_for_a_created_network() -> None:
    """azure-native would look in its own subscription, and fail halfway. AKS links its own."""
    made: dict[str, Any] = {"addressSpace": "10.0.0.0/16", "id": None, "nodeSubnet": None, "endpointSubnet": None}
    elsewhere = [zone.replace(SUBSCRIPTION, SUBSCRIPTION.replace("a", "f")) for zone in (ZONE, REGISTRIES, BLOBS)]
    message = refused(stack(**made, containers=True, zones=elsewhere))
    assert "network.zones has privatelink.azurecr.io in another subscription, so this stack cannot link" in message
    assert re.findall(r"rm -s test --path 'network.zones\[(\d)\]'    #", message) == ["2", "1"], (
        "the order keeps the indices valid"
    )
    assert refused(stack(**made, zones=[elsewhere[0], REGISTRIES])) == ""
    assert refused(stack(zones=elsewhere)) == "", "the user links an existing network"


def test_the_users_identity_needs_its_roles(azure: dict[str, Answer], warnings: list[str]) -> None:
    mine = stack(identity=MINE, zones=[ZONE])
    assert refused(mine) == ""
    azure["hub/providers/Microsoft.Authorization/roleAssignments"] = answer({"value": []})
    message = refused(mine)
    assert "cluster.identity does not have the role Network Contributor on hub" in message
    assert f"--assignee-object-id {PRINCIPAL} --assignee-principal-type ServicePrincipal --scope {HUB}" in message
    azure["azmk8s.io/providers/Microsoft.Authorization/roleAssignments"] = answer({"value": []})
    assert "does not have the role Private DNS Zone Contributor on privatelink.eastus.azmk8s.io" in refused(mine)
    assert not warnings


def test_the_users_identity_needs_a_role_on_reservations(azure: dict[str, Answer]) -> None:
    """Otherwise AKS refuses the pool, after cluster and system pool (its page on capacity reservation groups)."""
    crg = f"{NETWORKS.partition('/providers')[0]}/providers/Microsoft.Compute/capacityReservationGroups/crg"
    pools = {"gpu": PoolSettings(vm_sku=H100, capacity_reservation_group=crg)}
    reserved = stack(identity=MINE).model_copy(update={"pools": pools})
    assert refused(reserved) == ""
    azure["crg/providers/Microsoft.Authorization/roleAssignments"] = answer({"value": []})
    assert "cluster.identity does not have the role Contributor on crg" in refused(reserved)


def test_warns_of_other_roles_of_the_users_identity(azure: dict[str, Answer], warnings: list[str]) -> None:
    azure["roleAssignments"] = answer({"value": [{"properties": {"roleDefinitionId": READER}}]})
    assert refused(stack(identity=MINE)) == ""
    assert "does not have the role Network Contributor" in warnings[0]


def test_the_deployer_must_be_allowed_to_assign_the_identitys_roles(azure: dict[str, Answer]) -> None:
    group = NETWORKS.partition("/providers")[0]
    azure[f"{group}/providers/Microsoft.Authorization/permissions"] = answer({"value": []})
    assert "cannot assign roles" in refused(stack())
    assert refused(stack(identity=MINE)) == ""
    azure["providers/Microsoft.ManagedIdentity?"] = answer({"registrationState": "NotRegistered"})
    assert "az provider register --namespace Microsoft.ManagedIdentity" in refused(stack())


def test_accepts_the_roles_that_the_stack_assigns() -> None:
    assert roles.NETWORK_CONTRIBUTOR in SUFFICIENT["Network Contributor"]
    assert roles.PRIVATE_DNS_ZONE_CONTRIBUTOR in SUFFICIENT["Private DNS Zone Contributor"]
