from __future__ import annotations

from typing import Any

import pytest

from simulator.azure.ids import parse_id
from simulator.azure.types.managed_cluster.rules import kubelet_identity
from tests.support.arm import CLUSTER, GROUP, Arm, cluster_body
from tests.support.networks import make

IDENTITY = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/aks"
OWN = {"type": "UserAssigned", "userAssignedIdentities": {IDENTITY: {}}}
OPERATOR = "f1a07417-d97a-45cb-824c-7a7467783830"
OVERLAY = {"networkPlugin": "azure", "networkPluginMode": "overlay"}


def refused(arm: Arm, body: dict[str, Any]) -> tuple[str, str]:
    answer = arm.put(CLUSTER, body)
    assert answer.status_code == 400, answer.text
    assert arm.call("GET", CLUSTER).status_code == 404
    return arm.refusal(answer)[1:]


def test_rejects_more_than_200_authorized_ranges(group: Arm) -> None:
    ranges = [f"8.8.{number}.8/32" for number in range(201)]
    assert (
        "the maximum is 200" in refused(group, cluster_body(apiServerAccessProfile={"authorizedIPRanges": ranges}))[1]
    )


def test_stores_a_maintenance_window_until_the_cluster_is_deleted(cluster: Arm) -> None:
    path = f"{CLUSTER}/maintenanceConfigurations/aksManagedNodeOSUpgradeSchedule"
    sundays = {"weekly": {"dayOfWeek": "Sunday", "intervalWeeks": 1}}
    window = {"maintenanceWindow": {"durationHours": 4, "schedule": sundays, "startTime": "02:00"}}
    assert cluster.put(path, {"properties": window}).status_code == 201
    assert cluster.get(path)["properties"] == window
    cluster.call("DELETE", CLUSTER)
    cluster.done()
    assert cluster.call("GET", path).status_code == 404


# -- identity and login ------------------------------------------------------------------------------------------------


def test_an_update_may_omit_the_identity(cluster: Arm) -> None:
    assert cluster.put(CLUSTER, cluster_body() | {"identity": None}).status_code == 200


def test_accepts_a_service_principal_instead_of_an_identity(group: Arm) -> None:
    make(group, CLUSTER, cluster_body(servicePrincipalProfile={"clientId": "a", "secret": "b"}) | {"identity": None})


def test_the_cluster_must_be_allowed_to_assign_the_kubelet_identity(group: Arm) -> None:
    """Codes and the role: AKS's page "Use a managed identity" and user reports."""
    nodes = f"{IDENTITY}-nodes"
    kubelet = {"identityProfile": {"kubeletidentity": {"resourceId": nodes}}}
    assert refused(group, cluster_body(**kubelet))[0] == "CustomKubeletIdentityOnlySupportedOnUserAssignedMSICluster"
    asked = cluster_body(**kubelet) | {"identity": OWN}
    mine = group.put(IDENTITY, {"location": "eastus"}).json()["properties"]["principalId"]
    assert refused(group, asked)[0] == "CustomKubeletIdentityMissingPermissionError"
    group.assign(OPERATOR, GROUP, mine)
    assert refused(group, asked)[0] == "CustomKubeletIdentityMissingPermissionError"
    assert group.put(nodes, {"location": "eastus"}).status_code == 201
    asked["properties"]["identityProfile"]["kubeletidentity"] |= {"objectId": mine, "clientId": mine}  # ignored
    made = make(group, CLUSTER, asked)["properties"]["identityProfile"]["kubeletidentity"]
    ids = group.get(nodes)["properties"]
    assert made == {"resourceId": nodes, "clientId": ids["clientId"], "objectId": ids["principalId"]}
    world = group.server.world
    record = world.store.get(parse_id(CLUSTER))
    assert record is not None
    assert kubelet_identity(record) == ids["principalId"], "nodes pull images with it"


def test_an_update_may_keep_the_kubelet_identity_of_aks(cluster: Arm) -> None:
    shown = cluster.get(CLUSTER)["properties"]["identityProfile"]
    changed = {"kubeletidentity": shown["kubeletidentity"] | {"objectId": "else"}}
    assert make(cluster, CLUSTER, cluster_body(identityProfile=changed))["properties"]["identityProfile"] == shown


def test_an_update_without_entra_keeps_it(group: Arm) -> None:
    make(group, CLUSTER, cluster_body(aadProfile={"managed": True}))
    make(group, CLUSTER, cluster_body(disableLocalAccounts=True))
    assert group.get(CLUSTER)["properties"]["aadProfile"]["managed"] is True


# -- address ranges ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "network",
    [
        {"dnsServiceIP": "10.0.0.2"},
        {"serviceCidr": "10.0.0.0/12"},
        {"serviceCidr": "10.2.0.0/24", "dnsServiceIP": "10.2.0.10"},
        {"serviceCidrs": ["10.2.0.0/24", "fd00::/108"], "dnsServiceIP": "10.2.0.10"},
        OVERLAY | {"podCidr": "10.244.3.1/16"},
        OVERLAY | {"podCidrs": ["10.1.0.0/16", "fd00:1::/64"]},
    ],
)
def test_accepts_valid_address_ranges(group: Arm, network: dict[str, Any]) -> None:
    assert group.put(CLUSTER, cluster_body(networkProfile=network)).status_code == 201


def test_reports_all_errors_in_address_ranges_at_once(group: Arm) -> None:
    network = OVERLAY | {"serviceCidr": "10.240.0.0/11"}
    error = group.put(CLUSTER, cluster_body(networkProfile=network)).json()["error"]
    assert [detail["code"] for detail in error["details"]] == [
        "InvalidParameter",
        "PodCidrOverlapServiceCidr",
        "DnsServiceIpOutOfServiceCidr",
    ]


@pytest.mark.parametrize(
    "network",
    [{"networkPlugin": "kubenet"}, {"networkPlugin": "azure"}, OVERLAY, {"networkPlugin": "none"}],
    ids=["kubenet", "flat", "overlay", "none"],
)
def test_an_update_keeps_the_network_plugin(group: Arm, network: dict[str, str]) -> None:
    make(group, CLUSTER, cluster_body(networkProfile=network))
    assert group.put(CLUSTER, cluster_body()).status_code == 200
    shown = group.get(CLUSTER)["properties"]["networkProfile"]
    assert {name: shown.get(name) for name in OVERLAY} == dict.fromkeys(OVERLAY) | network


def test_a_load_balancer_has_the_requested_number_of_addresses(group: Arm) -> None:
    asked = {"loadBalancerProfile": {"managedOutboundIPs": {"count": 3}}}
    assert group.put(CLUSTER, cluster_body(networkProfile=asked)).status_code == 201
    balancer = group.get(CLUSTER)["properties"]["networkProfile"]["loadBalancerProfile"]
    assert len({address["id"] for address in balancer["effectiveOutboundIPs"]}) == 3


def test_accepts_its_own_response_as_an_update(cluster: Arm) -> None:
    """The Azure CLI reads a cluster and puts it back with a change."""
    shown = cluster.get(CLUSTER)
    assert make(cluster, CLUSTER, shown) == shown
