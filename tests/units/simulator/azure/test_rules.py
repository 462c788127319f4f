"""ARM's rules: what it refuses, with which code, and what it fills in."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.azure.subscription import guid
from tests.support.arm import CLUSTER, GROUP, H100, SUBSCRIPTION, Arm, cluster_body, pool_body, pool_path

ADMIN_ROLE = "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"
SPOT = {"scaleSetPriority": "Spot"}


def upgrades(**settings: str) -> dict[str, Any]:
    return {"upgradeSettings": settings}


@pytest.mark.parametrize(
    ("name", "changes", "code", "part"),
    [
        ("Gpu", {}, "InvalidParameter", "1 to 12 lower-case letters or digits"),
        ("gpu-h100", {}, "InvalidParameter", "1 to 12 lower-case letters or digits"),
        ("abcdefghijklm", {}, "InvalidParameter", "1 to 12 lower-case letters or digits"),
        ("gpu", {"count": 1001}, "InvalidParameter", "the most is 1000"),
        ("gpu", {"count": -1}, "InvalidParameter", "the least is 0"),
        ("gpu", {"count": "two"}, "InvalidParameter", "must be of type integer"),
        ("gpu", {"vmSze": "x"}, "InvalidParameter", "Did you mean 'properties.vmSize'"),
        ("gpu", {"vmSize": "Standard_ND96isr_H10_v5"}, "BadRequest", f"Did you mean {H100}"),
        ("gpu", {"vmSize": "Standard_ND96isr_MI300X_v5"}, "BadRequest", "not allowed in your subscription"),
        ("gpu", {"osSKU": "Ubuntu2404"}, "InvalidParameter", "simulated): 'Ubuntu2404'. Allowed: Ubuntu, Ubuntu2204"),
        ("gpu", {"gpuProfile": {"driver": "none"}}, "InvalidParameter", "simulated): 'none'. Allowed: Install, None."),
        ("gpu", {"orchestratorVersion": "1.30"}, "AgentPoolK8sVersionNotSupported", "Version 1.30 is not supported"),
        ("gpu", {"orchestratorVersion": "1.36"}, "NodePoolMcVersionIncompatible", "incompatible"),
        ("gpu", {"enableAutoScaling": True}, "InvalidParameter", "needs minCount and maxCount"),
        ("gpu", {"enableAutoScaling": True, "minCount": 3, "maxCount": 4}, "InvalidParameter", "must lie between"),
        ("gpu", {"minCount": 1, "maxCount": 2}, "InvalidParameter", "need enableAutoScaling"),
        ("gpu", {"spotMaxPrice": -1}, "InvalidParameter", "only be set with scaleSetPriority Spot"),
        ("gpu", {"scaleSetPriority": "Spot", "mode": "System"}, "InvalidParameter", "cannot have mode System"),
        ("gpu", {"nodeTaints": ["sku=gpu:Never"]}, "InvalidParameter", "key=value:effect"),
        ("gpu", {"nodeLabels": {"kubernetes.azure.com/x": "y"}}, "InvalidParameter", "reserves"),
        ("gpu", {"count": 11}, "ErrCode_InsufficientVCPUQuota", "requested 1056, remaining 960"),
        ("gpu", {"vmSize": "Standard_D4ads_v5"}, "InvalidParameter", "has no GPU"),
        ("sys", {"vmSize": "Standard_D2s_v3", "gpuProfile": None, "mode": "System"}, "SystemPoolSkuTooLow", "4"),
        ("gpu", {"osDiskType": "Ephemeral", "osDiskSizeGB": 2000}, "InvalidParameter", "does not fit"),
        ("gpu", {**SPOT, **upgrades(maxSurge="1")}, "InvalidParameter", "Spot pools can't set max surge."),
        ("gpu", {**SPOT, **upgrades(maxUnavailable="1")}, "InvalidParameter", "Spot pools can't set maxUnavailable."),
        ("gpu", upgrades(maxSurge="0"), "InvalidParameter", "without maxSurge it needs maxUnavailable"),
        ("gpu", upgrades(maxSurge="0%", maxUnavailable="0"), "InvalidParameter", "without maxSurge it needs"),
        ("gpu", upgrades(maxSurge="one"), "InvalidParameter", "A number of nodes, or a percentage of them"),
        ("gpu", {"mode": "System", **upgrades(maxUnavailable="1")}, "InvalidParameter", "cannot have maxUnavailable"),
    ],
)
def test_pool_refused(cluster: Arm, name: str, changes: dict[str, Any], code: str, part: str) -> None:
    status, found, message = cluster.refusal(cluster.put(pool_path(name), pool_body(**changes)))
    assert (status, found) == (400, code)
    assert part in message
    assert cluster.call("GET", pool_path(name)).status_code == 404


def test_all_problems_of_a_body_are_told_at_once(cluster: Arm) -> None:
    error = cluster.put(pool_path(), pool_body(count=-1, osSKU="x")).json()["error"]
    assert [detail["target"] for detail in error["details"]] == ["properties.count", "properties.osSKU"]


@pytest.mark.parametrize(
    "change",
    [
        {"vmSize": "Standard_ND96isr_H200_v5"},
        {"gpuProfile": {"driver": "Install"}},
        {"osDiskSizeGB": 256},
        {"osDiskType": "Ephemeral"},
        {"scaleSetPriority": "Spot"},
        {"availabilityZones": ["1"]},
        {"maxPods": 100},
        {"vnetSubnetID": "/subscriptions/s/subnets/x"},
        {"gpuInstanceProfile": "MIG1g"},
    ],
)
def test_pool_property_never_changes(cluster: Arm, change: dict[str, Any]) -> None:
    cluster.put(pool_path(), pool_body())
    cluster.done()
    status, code, message = cluster.refusal(cluster.put(pool_path(), pool_body(**change)))
    assert (status, code) == (400, "PropertyChangeNotAllowed")
    assert message.startswith(f"Changing property 'properties.{next(iter(change))}")


def test_pool_takes_defaults_and_scales(cluster: Arm) -> None:
    assert cluster.put(pool_path(), pool_body()).status_code == 201
    cluster.done()
    assert len(cluster.node_names()) == 4
    shown = cluster.get(pool_path())["properties"]
    assert (shown["provisioningState"], shown["osSKU"], shown["currentOrchestratorVersion"]) == (
        "Succeeded",
        "Ubuntu",
        "1.35.4",
    )
    for count in (3, 0, 2):
        assert cluster.put(pool_path(), pool_body(count=count)).status_code == 200
        cluster.done()
        assert len(cluster.node_names()) == 2 + count


def test_count_left_out_stays_as_it_is(cluster: Arm) -> None:
    cluster.put(pool_path(), pool_body(count=3))
    cluster.done()
    cluster.put(pool_path(), pool_body(count=None))
    assert cluster.get(pool_path())["properties"]["count"] == 3


def test_spot_pool_is_marked_and_has_a_quota_of_its_own(cluster: Arm) -> None:
    cluster.put(pool_path("reg"), pool_body(count=10))
    cluster.done()
    spot = {"scaleSetPriority": "Spot", "count": 10}
    assert cluster.put(pool_path("spot"), pool_body(**spot)).status_code == 201
    cluster.done()
    shown = cluster.get(pool_path("spot"))["properties"]
    assert "kubernetes.azure.com/scalesetpriority=spot:NoSchedule" in shown["nodeTaints"]
    assert (shown["spotMaxPrice"], shown["scaleSetEvictionPolicy"]) == (-1, "Delete")
    _, code, message = cluster.refusal(cluster.put(pool_path("spot"), pool_body(**spot)))
    assert (code, message) == ("PropertyChangeNotAllowed", "Changing property 'properties.nodeTaints' is not allowed.")
    _, code, message = cluster.refusal(cluster.put(pool_path("spot2"), pool_body(scaleSetPriority="Spot", count=1)))
    assert code == "ErrCode_InsufficientVCPUQuota"
    assert "remaining 0 for family lowPriorityCores" in message


@pytest.mark.parametrize(
    ("settings", "status"), [({"maxSurge": "33%"}, 400), ({"maxSurge": "0", "maxUnavailable": "1"}, 200)]
)
def test_an_upgrade_needs_quota_for_a_node_more_unless_it_is_in_place(
    cluster: Arm, settings: dict[str, str], status: int
) -> None:
    cluster.put(pool_path(), pool_body(count=10, **upgrades(**settings)))
    cluster.done()
    cluster.put(CLUSTER, cluster_body(kubernetesVersion="1.36"))
    cluster.done()
    answer = cluster.put(pool_path(), pool_body(count=10, orchestratorVersion="1.36", **upgrades(**settings)))
    assert answer.status_code == status
    if status == 400:
        assert "requested 1056, remaining 960" in cluster.refusal(answer)[2], "from 1.35 on one node is enough"


def test_spot_pools_have_no_upgrade_settings(cluster: Arm) -> None:
    cluster.put(pool_path(), pool_body(**SPOT))
    cluster.put(pool_path("regular"), pool_body())
    cluster.done()
    assert cluster.get(pool_path())["properties"]["upgradeSettings"] == {}
    assert cluster.get(pool_path("regular"))["properties"]["upgradeSettings"] == {"maxSurge": "10%"}


def test_quota_is_shown_as_used(cluster: Arm) -> None:
    cluster.put(pool_path(), pool_body())
    path = f"/subscriptions/{SUBSCRIPTION.subscription_id}/providers/Microsoft.Compute/locations/eastus/usages"
    usages = cluster.call("GET", path, **{"api-version": "2024-07-01"}).json()["value"]
    shown = {usage["name"]["value"]: (usage["currentValue"], usage["limit"]) for usage in usages}
    assert shown["standardNDSH100v5Family"] == (192, 960)
    assert shown["cores"] == (200, 4000)


def test_last_system_pool_stays(cluster: Arm) -> None:
    cluster.put(pool_path(), pool_body())
    cluster.done()
    status, code, _ = cluster.refusal(cluster.call("DELETE", pool_path("system")))
    assert (status, code) == (409, "OperationNotAllowed")


def test_busy_resource_refuses_changes_but_not_deletion(cluster: Arm) -> None:
    cluster.backend.gate.clear()
    cluster.put(pool_path(), pool_body())
    status, code, _ = cluster.refusal(cluster.put(pool_path(), pool_body(count=3)))
    assert (status, code) == (409, "OperationNotAllowed")
    assert cluster.call("DELETE", pool_path()).status_code == 202
    cluster.backend.gate.set()
    cluster.done()
    assert cluster.call("GET", pool_path()).status_code == 404
    assert len(cluster.node_names()) == 2


@pytest.mark.parametrize(
    ("properties", "code", "part"),
    [
        ({"kubernetesVersion": "1.34"}, "K8sVersionNotSupported", "1.34"),
        ({"agentPoolProfiles": None}, "InvalidParameter", "agentPoolProfiles is missing"),
        ({"agentPoolProfiles": [{"name": "a", "mode": "User"}]}, "BadRequest", "at least one system pool"),
        ({"dnsPrefix": "-x"}, "InvalidParameter", "DNS prefix"),
        ({"dnsPrefix": None}, "InvalidParameter", "dnsPrefix"),
        (
            {"linuxProfile": {"adminUsername": "1st", "ssh": {"publicKeys": [{"keyData": "ssh-rsa AAAA"}]}}},
            "InvalidParameter",
            "start with a letter",
        ),
        ({"aadProfile": {"enableAzureRBAC": True}}, "BadRequest", "managed"),
        ({"securityProfile": {"workloadIdentity": {"enabled": True}}}, "BadRequest", "OIDC issuer"),
    ],
)
def test_cluster_refused(arm: Arm, properties: dict[str, Any], code: str, part: str) -> None:
    arm.put(GROUP, {"location": "eastus"})
    status, found, message = arm.refusal(arm.put(CLUSTER, cluster_body(**properties)))
    assert (status, found) == (400, code)
    assert part in message


def test_cluster_with_a_refused_inline_pool_leaves_nothing(arm: Arm) -> None:
    arm.put(GROUP, {"location": "eastus"})
    pools = [
        {"name": "system", "mode": "System", "count": 1, "vmSize": "Standard_D4ads_v5"},
        {"name": "bad", "mode": "User", "count": 1, "vmSize": "Standard_None"},
    ]
    assert arm.put(CLUSTER, cluster_body(agentPoolProfiles=pools)).status_code == 400
    assert [record.id.name for record in arm.server.world.store.all()] == ["rg"]


def test_cluster_update_neither_adds_nor_removes_pools(cluster: Arm) -> None:
    cluster.put(pool_path(), pool_body())
    cluster.done()
    assert cluster.put(CLUSTER, cluster_body()).status_code == 200
    cluster.done()
    assert [pool["name"] for pool in cluster.get(CLUSTER)["properties"]["agentPoolProfiles"]] == ["system", "gpu"]
    body = cluster_body()
    body["properties"]["agentPoolProfiles"].append({"name": "more", "mode": "User", "vmSize": H100})
    _, code, message = cluster.refusal(cluster.put(CLUSTER, body))
    assert code == "BadRequest"
    assert message.startswith("A new agent pool was introduced.")


def test_cluster_upgrades_one_minor_version_at_a_time(cluster: Arm) -> None:
    _, code, _ = cluster.refusal(cluster.put(CLUSTER, cluster_body(kubernetesVersion="1.37")))
    assert code == "OperationNotAllowed"
    assert cluster.put(CLUSTER, cluster_body(kubernetesVersion="1.36")).status_code == 200
    cluster.done()
    assert cluster.get(CLUSTER)["properties"]["currentKubernetesVersion"] == "1.36.1"
    _, code, _ = cluster.refusal(cluster.put(CLUSTER, cluster_body(kubernetesVersion="1.35")))
    assert code == "OperationNotAllowed"


def test_pools_keep_their_version_until_they_are_told_another(cluster: Arm) -> None:
    cluster.put(pool_path(), pool_body(orchestratorVersion="1.35"))
    cluster.done()
    cluster.put(CLUSTER, cluster_body(kubernetesVersion="1.36"))
    cluster.done()
    assert {pool["currentOrchestratorVersion"] for pool in inline_pools(cluster)} == {"1.35.4"}
    cluster.put(pool_path(), pool_body(orchestratorVersion="1.36"))
    cluster.done()
    assert [pool["currentOrchestratorVersion"] for pool in inline_pools(cluster)] == ["1.35.4", "1.36.1"]
    kubelets = {node["status"]["nodeInfo"]["kubeletVersion"] for node in cluster.backend.nodes[CLUSTER]}
    assert kubelets == {"v1.35.4", "v1.36.1"}


def test_the_clusters_own_request_tells_versions_of_all_pools_or_of_none(cluster: Arm) -> None:
    cluster.put(pool_path(), pool_body())
    cluster.done()
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


def test_the_autoscalers_count_is_nobody_elses_to_set_but_its_bounds_are(cluster: Arm) -> None:
    scaled = {"enableAutoScaling": True, "minCount": 0, "maxCount": 4}
    cluster.put(pool_path(), pool_body(count=1, **scaled))
    cluster.done()
    status, code, message = cluster.refusal(cluster.put(pool_path(), pool_body(count=2, **scaled)))
    assert (status, code) == (400, "InvalidParameter")
    assert "Cannot manually scale AgentPool" in message
    bounds = {**scaled, "minCount": 2}
    assert cluster.put(pool_path(), pool_body(count=1, **bounds)).is_success, "the autoscaler brings the second"


@pytest.mark.parametrize(
    ("scale", "fits"),
    [
        ({"count": 2}, True),
        ({"count": 3}, False),
        ({"count": 1, "enableAutoScaling": True, "minCount": 1, "maxCount": 3}, False),
    ],
)
def test_each_node_that_may_come_needs_256_addresses_of_an_overlay(arm: Arm, scale: dict[str, Any], fits: bool) -> None:
    overlay = {"networkPlugin": "azure", "networkPluginMode": "overlay", "podCidr": "10.244.0.0/22"}
    arm.put(GROUP, {"location": "eastus"})
    arm.put(CLUSTER, cluster_body(networkProfile=overlay))  # two nodes, of the four that there is room for
    arm.done()
    answer = arm.put(pool_path(), pool_body(**scale))
    if fits:
        assert answer.status_code == 201
    else:
        _, code, message = arm.refusal(answer)
        assert code == "InsufficientSubnetSize"
        assert "Pre-allocated IPs 1280 exceeds IPs available 1024" in message


def test_cluster_shows_what_the_program_reads(cluster: Arm) -> None:
    shown = cluster.get(CLUSTER)
    properties = shown["properties"]
    assert shown["id"] == CLUSTER
    assert shown["identity"]["principalId"] == guid(CLUSTER, "identity")
    assert properties["identityProfile"]["kubeletidentity"]["objectId"]
    assert properties["nodeResourceGroup"] == "MC_rg_aks_eastus"
    assert properties["currentKubernetesVersion"] == "1.35.4"
    assert properties["fqdn"].endswith(".hcp.eastus.azmk8s.io")


def test_failed_operation_is_shown_and_can_be_tried_again(arm: Arm) -> None:
    arm.put(GROUP, {"location": "eastus"})
    arm.backend.failure = "no disk space"
    answer = arm.put(CLUSTER, cluster_body())
    arm.done()
    operation = arm.client.get(answer.headers["Azure-AsyncOperation"]).json()
    assert operation["error"] == {"code": "InternalOperationError", "message": "no disk space"}
    assert arm.get(CLUSTER)["properties"]["provisioningState"] == "Failed"
    arm.backend.failure = ""
    assert arm.put(CLUSTER, cluster_body()).status_code == 200
    arm.done()
    assert arm.get(CLUSTER)["properties"]["provisioningState"] == "Succeeded"


def _role(principal: str, role: str = ADMIN_ROLE) -> dict[str, Any]:
    definition = f"/providers/Microsoft.Authorization/roleDefinitions/{role}"
    return {"properties": {"principalId": principal, "roleDefinitionId": definition, "principalType": "User"}}


def test_role_assignments(cluster: Arm) -> None:
    base = f"{CLUSTER}/providers/Microsoft.Authorization/roleAssignments"
    path, other = f"{base}/{guid('a')}", f"{base}/{guid('b')}"
    assert cluster.put(path, _role(SUBSCRIPTION.object_id)).status_code == 201
    assert cluster.get(path)["properties"]["scope"] == CLUSTER
    assert cluster.refusal(cluster.put(other, _role(SUBSCRIPTION.object_id)))[:2] == (409, "RoleAssignmentExists")
    assert cluster.refusal(cluster.put(path, _role(guid("c"))))[:2] == (400, "RoleAssignmentUpdateNotPermitted")
    assert cluster.refusal(cluster.put(other, _role(guid("c"), guid("d"))))[:2] == (404, "RoleDefinitionDoesNotExist")
    assert cluster.call("DELETE", path).status_code == 200
    assert cluster.call("DELETE", path).status_code == 204
