"""A cluster in a network that is not AKS's: what is made of it, who joins it, and what is private there."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

import pytest

from components.cluster_network import network_profile
from components.roles import NETWORK_CONTRIBUTOR, PRIVATE_DNS_ZONE_CONTRIBUTOR
from config.rules.addresses import addresses_needed
from config.rules.cost import hourly_cost
from config.schema.network import layout, usable
from config.schema.pools import MAX_NODES
from tests.support.lookups import HUB, ZONES
from tests.support.mocked_azure import ADDRESS, PRINCIPAL, SUBSCRIPTION, Azure
from tests.support.mocks import Recorder, program
from tests.support.settings import H100, T4, load

MINE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net/providers/Microsoft.ManagedIdentity/userAssignedIdentities/me"
IN_HUB = {
    "id": HUB,
    "nodeSubnet": f"{HUB}/subnets/nodes",
    "endpointSubnet": f"{HUB}/subnets/endpoints",
    "outbound": "loadBalancer",
}
OWN = {"addressSpace": "10.0.0.0/16"}
PREMIUM = {"registry": {"sku": "Premium"}}
CONTAINERS: dict[str, Any] = {"storage": {"containers": {"data": {}}}}


def deployed(network: dict[str, Any], **keys: Any) -> Recorder:
    """A platform with one GPU pool."""
    azure = Azure(identities={"me"})
    return program({"vmSku": H100, "workloads": "nccl-allreduce", "network": network, **keys}, azure)


def roles(recorder: Recorder) -> dict[str, str]:
    """Who may what there, by the names of the assignments: the role."""
    made = [each for each in recorder.registered if each.type.endswith(":RoleAssignment")]
    return {each.name: each.inputs["roleDefinitionId"].rpartition("/")[2] for each in made if "cluster-" in each.name}


@pytest.mark.parametrize("space", ["10.0.0.0/8", "10.0.0.0/15", "192.168.7.0/24"])
def test_subnets_share_an_address_space_without_overlap(space: str) -> None:
    found, whole = layout(space), IPv4Network(space)
    assert found.nodes.subnet_of(whole)
    assert found.endpoints.subnet_of(whole)
    assert not found.nodes.overlaps(found.endpoints)
    assert usable(found.nodes) == whole.num_addresses // 2 - 5


def test_the_seeds_address_space_has_room_for_the_largest_pools_there_are() -> None:
    assert usable(layout("10.0.0.0/15").nodes) > 20 * MAX_NODES


@pytest.mark.parametrize(
    ("pool", "private", "needed"),
    [
        ({"vmSku": H100, "count": 4}, False, 3 + 1 + 4),
        ({"vmSku": H100, "count": 4}, True, 3 + 1 + 4 + 1),
        ({"vmSku": H100, "autoscale": {"min": 0, "max": 9}}, False, 3 + 1 + 9),
        ({"vmSku": T4, "count": 4}, False, 3 + 1 + 4 + 1),
        ({"vmSku": H100, "count": 4, "spot": True}, False, 3 + 1 + 4 + 1),
    ],
)
def test_nodes_need_addresses_for_the_most_there_can_be(pool: dict[str, Any], *, private: bool, needed: int) -> None:
    """System nodes and one for upgrades; those of the pool, with one for upgrades but where it is upgraded in place."""
    stack = load({"pools": {"gpu": pool}, "network": {**OWN, "private": private}, **PREMIUM})
    assert addresses_needed(stack) == needed


def test_all_nodes_are_in_the_subnet_of_a_network_with_a_way_out() -> None:
    recorder = deployed(OWN)
    network = recorder.one("network:VirtualNetwork").inputs
    nodes, endpoints = network["subnets"]
    assert (nodes["addressPrefix"], endpoints["addressPrefix"]) == ("10.0.0.0/17", "10.0.128.0/27")
    assert "NatGateway" in nodes["natGateway"]["id"]
    assert "natGateway" not in endpoints
    assert [each["defaultOutboundAccess"] for each in (nodes, endpoints)] == [False, False]
    cluster = recorder.one(":ManagedCluster").inputs
    (system,) = cluster["agentPoolProfiles"]
    assert system["vnetSubnetID"] == recorder.one(":AgentPool").inputs["vnetSubnetID"]
    assert system["vnetSubnetID"].endswith("/VirtualNetwork/ai-on-aks-test/subnets/nodes")
    assert cluster["networkProfile"]["outboundType"] == "userAssignedNATGateway"


@pytest.mark.parametrize(
    ("outbound", "given", "sent"),
    [
        ("natGateway", ["137.117.106.88/29"], ["137.117.106.88/29", f"{ADDRESS}/32"]),
        ("natGateway", [], []),
        ("loadBalancer", ["137.117.106.88/29"], ["137.117.106.88/29"]),
    ],
)
def test_nodes_that_come_by_the_gateway_are_let_in(outbound: str, given: list[str], sent: list[str]) -> None:
    """AKS adds the load balancer's address by itself, and no gateway's (its page on authorized IP ranges)."""
    recorder = deployed({**OWN, "outbound": outbound}, cluster={"authorizedIpRanges": given})
    access = recorder.one(":ManagedCluster").inputs["apiServerAccessProfile"]
    assert access["authorizedIPRanges"] == sent


def test_by_the_load_balancer_no_gateway_is_made() -> None:
    recorder = deployed({**OWN, "outbound": "loadBalancer"})
    assert not recorder.names(":NatGateway") + recorder.names(":PublicIPAddress")
    assert recorder.one(":ManagedCluster").inputs["networkProfile"]["outboundType"] == "loadBalancer"


@pytest.mark.parametrize(
    ("network", "sent"),
    [
        ({}, "loadBalancer"),
        (OWN, "userAssignedNATGateway"),
        ({**IN_HUB, "outbound": "natGateway"}, "userAssignedNATGateway"),
        (IN_HUB, "loadBalancer"),
        ({**IN_HUB, "outbound": "userDefinedRouting"}, "userDefinedRouting"),
    ],
)
def test_the_way_out_in_the_words_of_aks(network: dict[str, Any], sent: str) -> None:
    stack = load({"vmSku": H100, "network": network})
    assert network_profile(stack.network).outbound_type == sent
    costs = [item.what for item in hourly_cost(stack, {}).items if "balancer" in item.what or "gateway" in item.what]
    assert bool(costs) == (sent == "loadBalancer" or "addressSpace" in network)


def test_services_keep_clear_of_the_network_and_their_dns_is_among_them() -> None:
    profile = deployed({**OWN, "serviceRange": "10.99.0.0/16"}).one(":ManagedCluster").inputs["networkProfile"]
    assert (profile["serviceCidr"], profile["dnsServiceIP"]) == ("10.99.0.0/16", "10.99.0.10")


def test_in_aks_own_network_services_and_nodes_are_where_they_were() -> None:
    cluster = deployed({"policy": "calico"}).one(":ManagedCluster").inputs
    profile = cluster["networkProfile"]
    assert (profile["serviceCidr"], profile["dnsServiceIP"]) == ("10.0.0.0/16", "10.0.0.10")
    assert "vnetSubnetID" not in cluster["agentPoolProfiles"][0]
    assert cluster["identity"]["type"] == "SystemAssigned"
    assert (profile["networkPolicy"], "networkDataplane" in profile) == ("calico", False)


def test_cilium_enforces_policies_by_its_own_data_plane() -> None:
    """Without the data plane, AKS has no Cilium (its page on Azure CNI Powered by Cilium)."""
    profile = deployed({"policy": "cilium"}).one(":ManagedCluster").inputs["networkProfile"]
    assert (profile["networkPolicy"], profile["networkDataplane"]) == ("cilium", "cilium")


@pytest.mark.parametrize(
    ("network", "identity", "expected"),
    [
        (OWN, None, {"cluster-network": NETWORK_CONTRIBUTOR, "cluster-gateway": NETWORK_CONTRIBUTOR}),
        (OWN, MINE, {"cluster-network": NETWORK_CONTRIBUTOR, "cluster-gateway": NETWORK_CONTRIBUTOR}),
        ({**OWN, "outbound": "loadBalancer"}, None, {"cluster-network": NETWORK_CONTRIBUTOR}),
        (IN_HUB, None, {"cluster-network": NETWORK_CONTRIBUTOR}),
        (IN_HUB, MINE, {}),
    ],
)
def test_the_control_plane_joins_by_a_role_unless_the_user_gave_theirs_one(
    network: dict[str, Any], identity: str | None, expected: dict[str, str]
) -> None:
    recorder = deployed(network, cluster={"identity": identity or ""} if identity else {})
    assert {name: role for name, role in roles(recorder).items() if name != "deployer-cluster-admin"} == expected
    cluster = recorder.one(":ManagedCluster")
    assert cluster.inputs["identity"]["type"] == "UserAssigned"
    assert bool(identity) == (cluster.inputs["identity"]["userAssignedIdentities"] == [identity])
    for name in expected:
        assert recorder.one(":RoleAssignment", name).inputs["principalId"] == PRINCIPAL
        assert f"azure-native:authorization:RoleAssignment {name}" in cluster.dependencies


def test_a_private_cluster_has_no_name_outside() -> None:
    access = deployed({**OWN, "private": True}, **PREMIUM).one(":ManagedCluster").inputs["apiServerAccessProfile"]
    assert (access["enablePrivateCluster"], access["enablePrivateClusterPublicFQDN"]) == (True, False)
    assert access["privateDNSZone"] == "system"
    assert not access.get("authorizedIPRanges")


def test_its_zone_may_be_the_users_with_a_role_there() -> None:
    zone = f"{ZONES}/below.privatelink.eastus.azmk8s.io"
    recorder = deployed({**IN_HUB, "private": True, "zones": [zone]}, **PREMIUM)
    assert recorder.one(":ManagedCluster").inputs["apiServerAccessProfile"]["privateDNSZone"] == zone
    assert roles(recorder)["cluster-zone"] == PRIVATE_DNS_ZONE_CONTRIBUTOR
    assert recorder.one(":RoleAssignment", "cluster-zone").inputs["scope"] == zone


def test_registry_and_data_are_reached_by_private_endpoints_alone() -> None:
    recorder = deployed({**OWN, "private": True}, **PREMIUM, **CONTAINERS)
    for kind in ("containerregistry:Registry", ":StorageAccount"):
        assert recorder.one(kind).inputs["publicNetworkAccess"] == "Disabled"
    for use, kind in (("registry", "/Registry/"), ("blob", "/StorageAccount/"), ("dfs", "/StorageAccount/")):
        endpoint = recorder.one(":PrivateEndpoint", f"endpoint-{use}").inputs
        (connection,) = endpoint["privateLinkServiceConnections"]
        assert connection["groupIds"] == [use]
        assert kind in connection["privateLinkServiceId"]
        assert endpoint["subnet"]["id"].endswith("/subnets/endpoints")
        (records,) = recorder.one(":PrivateDnsZoneGroup", f"names-{use}").inputs["privateDnsZoneConfigs"]
        assert records["privateDnsZoneId"].endswith(
            recorder.one(":PrivateZone", f"zone-{use}").inputs["privateZoneName"]
        )
        assert (
            recorder.one(":VirtualNetworkLink", f"link-{use}").inputs["virtualNetwork"]["id"].endswith("ai-on-aks-test")
        )


def test_each_storage_account_has_endpoints_and_all_share_their_zones() -> None:
    accounts = {"storage": {"containers": {"data": {}}, "accounts": {"output": {"containers": {"results": {}}}}}}
    recorder = deployed({**OWN, "private": True}, **PREMIUM, **accounts)
    found = ["endpoint-blob", "endpoint-blob-output", "endpoint-dfs", "endpoint-dfs-output", "endpoint-registry"]
    assert recorder.names(":PrivateEndpoint") == found
    assert recorder.names(":PrivateZone") == ["zone-blob", "zone-dfs", "zone-registry"]


def test_without_containers_there_is_nothing_of_storage() -> None:
    recorder = deployed({**OWN, "private": True}, **PREMIUM)
    assert recorder.names(":PrivateEndpoint") == ["endpoint-registry"]


def test_public_stacks_stay_open() -> None:
    recorder = deployed(OWN, **CONTAINERS)
    assert not recorder.names(":PrivateEndpoint") + recorder.names(":PrivateZone")
    for kind in ("containerregistry:Registry", ":StorageAccount"):
        assert recorder.one(kind).inputs.get("publicNetworkAccess", "Enabled") == "Enabled"


@pytest.mark.parametrize(("network", "links"), [(OWN, ["link-registry"]), (IN_HUB, [])])
def test_the_users_zone_takes_the_records_and_is_linked_to_what_the_stack_makes(
    network: dict[str, Any], links: list[str]
) -> None:
    zone = f"{ZONES}/privatelink.azurecr.io"
    recorder = deployed({**network, "private": True, "zones": [zone]}, **PREMIUM)
    (records,) = recorder.one(":PrivateDnsZoneGroup").inputs["privateDnsZoneConfigs"]
    assert records["privateDnsZoneId"] == zone
    assert not recorder.names(":PrivateZone")
    assert recorder.names(":VirtualNetworkLink") == links
    assert all(recorder.one(":VirtualNetworkLink", each).inputs["resourceGroupName"] == "net" for each in links)


def test_jobs_wait_until_names_lead_to_registry_and_data() -> None:
    recorder = deployed({**OWN, "private": True}, **PREMIUM, **CONTAINERS)
    job = recorder.one("batch.volcano.sh/v1alpha1:Job")
    waits = {name.split()[-1] for name in job.dependencies}
    assert {"names-registry", "link-registry", "names-blob", "names-dfs"} <= waits


def test_network_registry_and_data_need_no_cluster_and_outlive_it() -> None:
    recorder = deployed({**OWN, "private": True}, **PREMIUM, **CONTAINERS)
    lasting = (":VirtualNetwork", ":NatGateway", ":PrivateEndpoint", ":PrivateDnsZoneGroup", ":PrivateZone",
               ":VirtualNetworkLink", "containerregistry:Registry", ":StorageAccount")  # fmt: skip
    kept = [each for each in recorder.registered if each.type.endswith(lasting)]
    assert len(kept) == 2 + 4 * 3 + 2
    assert not [name for each in kept for name in each.dependencies if "ManagedCluster" in name or "AgentPool" in name]
