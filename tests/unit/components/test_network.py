from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

import pytest

from components.azure.cluster_network import network_profile
from components.azure.roles import NETWORK_CONTRIBUTOR
from config.rules.addresses import addresses_needed
from config.rules.cost import hourly_cost
from config.schema.network import layout, usable
from tests.support.case_files import case_table
from tests.support.lookups import HUB, ZONES
from tests.support.mocked_azure import ADDRESS, PRINCIPAL, SUBSCRIPTION, Azure
from tests.support.mocks import Recorder, program
from tests.support.settings import load
from tests.support.sizes import H100, T4

MINE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net/providers/Microsoft.ManagedIdentity/userAssignedIdentities/me"
IN_HUB = {
    "id": HUB,
    "nodeSubnet": f"{HUB}/subnets/nodes",
    "endpointSubnet": f"{HUB}/subnets/endpoints",
    "outbound": "loadBalancer",
}
OWN = {"addressSpace": "10.0.0.0/16"}
PREMIUM = {"registry": {"sku": "Premium"}}


def deployed(network: dict[str, Any], **keys: Any) -> Recorder:
    azure = Azure(identities={"me"})
    return program({"vmSku": H100, "workloads": "nccl-allreduce", "network": network, **keys}, azure)


def roles(recorder: Recorder) -> dict[str, str]:
    made = [each for each in recorder.registered if each.type.endswith(":RoleAssignment")]
    return {each.name: each.inputs["roleDefinitionId"].rpartition("/")[2] for each in made if "cluster-" in each.name}


@pytest.mark.parametrize("space", ["10.0.0.0/8", "10.0.0.0/15", "192.168.7.0/24"])
def test_subnets_share_an_address_space_without_overlap(space: str) -> None:
    found, network = layout(space), IPv4Network(space)
    assert found.nodes.subnet_of(network)
    assert found.endpoints.subnet_of(network)
    assert not found.nodes.overlaps(found.endpoints)
    assert usable(found.nodes) == network.num_addresses // 2 - 5


@case_table(__file__, "addresses")
def test_computes_the_addresses_for_the_maximum_number_of_nodes(
    pool: dict[str, Any], *, private: bool, needed: int
) -> None:
    """Counts system nodes, and an extra node for each pool without upgrades in place."""
    stack = load({"pools": {"gpu": pool}, "network": {**OWN, "private": private}, **PREMIUM})
    assert addresses_needed(stack) == needed


@case_table(__file__, "ranges", address=ADDRESS)
def test_authorizes_the_address_of_the_nat_gateway(outbound: str, given: list[str], sent: list[str]) -> None:
    recorder = deployed({**OWN, "outbound": outbound}, cluster={"authorizedIpRanges": given})
    access = recorder.one(":ManagedCluster").inputs["apiServerAccessProfile"]
    assert access["authorizedIPRanges"] == sent


@case_table(__file__, "outbound", hub=HUB)
def test_maps_the_outbound_type_to_that_of_aks(network: dict[str, Any], sent: str) -> None:
    stack = load({"vmSku": H100, "network": network})
    assert network_profile(stack.network).outbound_type == sent
    costs = [item.what for item in hourly_cost(stack, {}).items if "balancer" in item.what or "gateway" in item.what]
    assert bool(costs) == (sent == "loadBalancer" or "addressSpace" in network)


def test_sets_the_service_range_and_its_dns_address() -> None:
    profile = deployed({**OWN, "serviceRange": "10.99.0.0/16"}).one(":ManagedCluster").inputs["networkProfile"]
    assert (profile["serviceCidr"], profile["dnsServiceIP"]) == ("10.99.0.0/16", "10.99.0.10")


@case_table(__file__, "roles", hub=HUB, mine=MINE, contributor=NETWORK_CONTRIBUTOR)
def test_assigns_the_control_planes_roles_on_created_resources(
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


@pytest.mark.parametrize(("network", "links"), [(OWN, ["link-registry"]), (IN_HUB, [])])
def test_the_users_zone_gets_the_records_and_is_linked_to_a_created_network(
    network: dict[str, Any], links: list[str]
) -> None:
    zone = f"{ZONES}/privatelink.azurecr.io"
    recorder = deployed({**network, "private": True, "zones": [zone]}, **PREMIUM)
    (records,) = recorder.one(":PrivateDnsZoneGroup").inputs["privateDnsZoneConfigs"]
    assert records["privateDnsZoneId"] == zone
    assert not recorder.names(":PrivateZone")
    assert recorder.names(":VirtualNetworkLink") == links
    assert all(recorder.one(":VirtualNetworkLink", each).inputs["resourceGroupName"] == "net" for each in links)


SECRET = ["workloadOptions"]
NOTEBOOK = {"workloads": "jupyterlab", "workloadOptions": {"jupyterlab": {"password": "open-sesame"}}}
OWN_T4: dict[str, Any] = {"vmSku": T4, "network": {"addressSpace": "10.0.0.0/16"}}
READ = "kubernetes:storage.k8s.io/v1:StorageClass storage.sharedClass"
BY_NFS = {"storage": {"sharedFiles": "nfs"}}


def with_notebook(**keys: Any) -> Recorder:
    return program({**OWN_T4, **NOTEBOOK, **BY_NFS, **keys}, Azure(), secret=SECRET)


def test_the_users_zone_gets_the_record_of_shared_files() -> None:
    zone = f"{ZONES}/privatelink.file.core.windows.net"
    subnets = {"nodeSubnet": f"{HUB}/subnets/nodes", "endpointSubnet": f"{HUB}/subnets/endpoints"}
    recorder = with_notebook(network={"id": HUB, **subnets, "outbound": "loadBalancer", "zones": [zone]})
    (records,) = recorder.one(":PrivateDnsZoneGroup").inputs["privateDnsZoneConfigs"]
    assert records["privateDnsZoneId"] == zone
    assert not recorder.names(":PrivateZone") + recorder.names(":VirtualNetworkLink")


@pytest.mark.parametrize("consumer", [False, True])
@pytest.mark.parametrize(
    ("storage", "name", "waits"),
    [({"sharedFiles": "nfs"}, "shared-files", []), ({"sharedClass": "fast"}, "fast", [READ]),
     ({"sharedClass": "azurefile-csi"}, "azurefile-csi", [])],
    ids=["created", "the user's", "AKS's"],
)  # fmt: skip
def test_claims_use_the_shared_class_which_is_read_if_it_is_the_users(
    storage: dict[str, str], name: str, waits: list[str], *, consumer: bool
) -> None:
    stack: dict[str, Any] = {**OWN_T4, "storage": storage}
    if consumer:
        azure = Azure(stacks={"dev": program(stack, Azure())})
        found = program({"platformStack": "dev", **NOTEBOOK}, azure, "mine", secret=SECRET)
    else:
        found = program({**stack, **NOTEBOOK}, Azure(), secret=SECRET)
    claim = found.one(":PersistentVolumeClaimPatch")
    assert claim.inputs["spec"]["storageClassName"] == name
    assert claim.inputs["metadata"]["name"] == f"jupyterlab-{'nfs' if name == 'shared-files' else name}"
    assert [each for each in claim.dependencies if each == READ] == waits
    assert found.names(":StorageClass") == (["shared-files"] if name == "shared-files" and not consumer else [])
