from __future__ import annotations

from typing import Any

import pytest

from simulator.azure.subscription import guid
from tests.support.arm import (
    CLUSTER,
    GROUP,
    SUBSCRIPTION,
    Arm,
    assignment_body,
    cluster_body,
    pool_body,
    pool_path,
)
from tests.support.networks import make

ADMIN_ROLE = "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"


def test_long_term_support_offers_older_versions(group: Arm) -> None:
    body = cluster_body(kubernetesVersion="1.34", supportPlan="AKSLongTermSupport")
    make(group, CLUSTER, body | {"sku": {"name": "Base", "tier": "Premium"}})
    (node,) = {node["status"]["nodeInfo"]["osImage"] for node in group.backend.nodes[CLUSTER]}
    assert node == "Ubuntu 22.04.5 LTS", "24.04 since 1.35"


def test_an_invalid_inline_pool_rejects_the_cluster(group: Arm) -> None:
    pools = [
        {"name": "system", "mode": "System", "count": 1, "vmSize": "Standard_D4ads_v5"},
        {"name": "bad", "mode": "User", "count": 1, "vmSize": "Standard_None"},
    ]
    assert group.put(CLUSTER, cluster_body(agentPoolProfiles=pools)).status_code == 400
    assert [record.id.name for record in group.server.world.store.all()] == ["rg"]


def test_a_cluster_update_keeps_omitted_pools(cluster: Arm) -> None:
    make(cluster, pool_path(), pool_body())
    make(cluster, CLUSTER, cluster_body())
    assert [pool["name"] for pool in cluster.get(CLUSTER)["properties"]["agentPoolProfiles"]] == ["gpu", "system"]


def test_a_cluster_can_be_upgraded_but_not_downgraded(cluster: Arm) -> None:
    make(cluster, CLUSTER, cluster_body(kubernetesVersion="1.36"))
    assert cluster.get(CLUSTER)["properties"]["currentKubernetesVersion"] == "1.36.1"
    _, code, _ = cluster.refusal(cluster.put(CLUSTER, cluster_body(kubernetesVersion="1.35")))
    assert code == "OperationNotAllowed"


def test_pools_keep_their_version_until_their_upgrade(cluster: Arm) -> None:
    make(cluster, pool_path(), pool_body(orchestratorVersion="1.35"))
    make(cluster, CLUSTER, cluster_body(kubernetesVersion="1.36"))
    assert {pool["currentOrchestratorVersion"] for pool in inline_pools(cluster)} == {"1.35.4"}
    make(cluster, pool_path(), pool_body(orchestratorVersion="1.36"))
    assert [pool["currentOrchestratorVersion"] for pool in inline_pools(cluster)] == ["1.36.1", "1.35.4"]
    kubelets = {node["status"]["nodeInfo"]["kubeletVersion"] for node in cluster.backend.nodes[CLUSTER]}
    assert kubelets == {"v1.35.4", "v1.36.1"}


def test_a_cluster_update_sets_the_versions_of_all_pools_or_none(cluster: Arm) -> None:
    make(cluster, pool_path(), pool_body())
    body = cluster_body(kubernetesVersion="1.36")
    body["properties"]["agentPoolProfiles"][0]["orchestratorVersion"] = "1.36"
    status, code, _ = cluster.refusal(cluster.put(CLUSTER, body))
    assert (status, code) == (400, "NotAllAgentPoolOrchestratorVersionSpecifiedAndUnchanged")
    gpu = {"name": "gpu", **pool_body()["properties"], "orchestratorVersion": "1.36"}
    body["properties"]["agentPoolProfiles"].append(gpu)
    assert cluster.put(CLUSTER, body).status_code == 200


def inline_pools(arm: Arm) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = arm.get(CLUSTER)["properties"]["agentPoolProfiles"]
    return found


def test_ignores_the_count_of_an_autoscaled_pool(cluster: Arm) -> None:
    """Azure/AKS, releases of 2024-08-27 (a new pool needs no count) and 2019-10-28 (a given one is ignored)."""
    scaled = {"enableAutoScaling": True, "minCount": 1, "maxCount": 4}
    for given in ({}, {"count": 2}):
        make(cluster, pool_path(), pool_body(**scaled, **{"count": None, **given}))
        assert cluster.get(pool_path())["properties"]["count"] == 1
    bounds = {**scaled, "minCount": 2}
    assert cluster.put(pool_path(), pool_body(count=None, **bounds)).is_success, "the autoscaler adds the second node"


def test_an_update_keeps_an_omitted_count(cluster: Arm) -> None:
    for count in (3, None):
        assert make(cluster, pool_path(), pool_body(count=count))["properties"]["count"] == 3


@pytest.mark.parametrize(
    ("scale", "fits"),
    [
        ({"count": 2}, True),
        ({"count": 3}, False),
        ({"count": 1, "enableAutoScaling": True, "minCount": 1, "maxCount": 3}, False),
    ],
)
def test_an_overlay_needs_256_addresses_for_each_possible_node(arm: Arm, scale: dict[str, Any], fits: bool) -> None:
    overlay = {"networkPlugin": "azure", "networkPluginMode": "overlay", "podCidr": "10.244.0.0/22"}
    arm.put(GROUP, {"location": "eastus"})
    arm.put(CLUSTER, cluster_body(networkProfile=overlay))  # two of at most four nodes
    arm.done()
    answer = arm.put(pool_path(), pool_body(**scale))
    if fits:
        assert answer.status_code == 201
    else:
        _, code, message = arm.refusal(answer)
        assert code == "InsufficientSubnetSize"
        assert "Pre-allocated IPs 1280 exceeds IPs available 1024" in message


def test_shows_a_failed_operation_and_allows_a_retry(group: Arm) -> None:
    group.backend.failure = "no disk space"
    answer = group.put(CLUSTER, cluster_body())
    group.done()
    operation = group.client.get(answer.headers["Azure-AsyncOperation"]).json()
    assert operation["error"] == {"code": "InternalOperationError", "message": "no disk space"}
    assert group.get(CLUSTER)["properties"]["provisioningState"] == "Failed"
    group.backend.failure = ""
    assert make(group, CLUSTER, cluster_body())["properties"]["provisioningState"] == "Succeeded"


def _role(principal: str, role: str = ADMIN_ROLE) -> dict[str, Any]:
    return assignment_body(role, principal, principalType="ServicePrincipal")


def test_role_assignments_are_unique_and_immutable(cluster: Arm) -> None:
    base = f"{CLUSTER}/providers/Microsoft.Authorization/roleAssignments"
    path, other = f"{base}/{guid('a')}", f"{base}/{guid('b')}"
    assert cluster.put(path, _role(SUBSCRIPTION.object_id)).status_code == 201
    assert cluster.get(path)["properties"]["scope"] == CLUSTER
    assert cluster.refusal(cluster.put(other, _role(SUBSCRIPTION.object_id)))[:2] == (409, "RoleAssignmentExists")
    assert cluster.refusal(cluster.put(path, _role(guid("c"))))[:2] == (400, "RoleAssignmentUpdateNotPermitted")
    elsewhere = f"{GROUP}/providers/Microsoft.Authorization/roleAssignments/{guid('a').upper()}"
    message = "Tenant ID, application ID, principal ID, and scope are not allowed to be updated."
    refused = cluster.refusal(cluster.put(elsewhere, _role(SUBSCRIPTION.object_id)))
    assert refused == (400, "RoleAssignmentUpdateNotPermitted", message)
    assert cluster.refusal(cluster.put(other, _role(guid("c"), guid("d"))))[:2] == (404, "RoleDefinitionDoesNotExist")
    assert cluster.call("DELETE", path).status_code == 200
    assert cluster.call("DELETE", path).status_code == 204
