"""ARM's rules of agent pools: what it refuses, with which code, and what it fills in."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.arm import CLUSTER, H100, SUBSCRIPTION, Arm, cluster_body, pool_body, pool_path

SPOT = {"scaleSetPriority": "Spot"}
LOCAL = {"osDiskType": "Ephemeral"}
CANNOT_FIT = "VMCannotFitEphemeralOSDisk"
A100, ND_A100, D4S = "Standard_NC24ads_A100_v4", "Standard_ND96asr_v4", "Standard_D4s_v5"
T4 = "Standard_NC4as_T4_v3"


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
        ("gpu", {"vmSize": "Standard_ND96isr_H10_v5"}, "BadRequest", f"Did you mean '{H100}'"),
        ("gpu", {"vmSize": "Standard_ND96isr_MI300X_v5"}, "BadRequest", "not allowed in your subscription"),
        ("gpu", {"osSKU": "Ubuntu2404"}, "InvalidParameter", "simulated): 'Ubuntu2404'. Allowed: Ubuntu, Ubuntu2204"),
        ("gpu", {"gpuProfile": {"driver": "none"}}, "InvalidParameter", "simulated): 'none'. Allowed: Install, None."),
        ("gpu", {"orchestratorVersion": "1.30"}, "AgentPoolK8sVersionNotSupported", "Version 1.30 is not supported"),
        ("gpu", {"orchestratorVersion": "1.36"}, "NodePoolMcVersionIncompatible", "incompatible"),
        ("gpu", {"enableAutoScaling": True}, "InvalidParameter", "needs minCount and maxCount"),
        ("gpu", {"enableAutoScaling": True, "minCount": 3, "maxCount": 4}, "InvalidParameter", "equal to minCount:3"),
        ("gpu", {"minCount": 1, "maxCount": 2}, "InvalidParameter", "need enableAutoScaling"),
        (
            "gpu",
            {"mode": "System", "nodeTaints": [], "enableAutoScaling": True, "minCount": 0, "maxCount": 3},
            "InvalidParameter",
            "agentPoolProfile.minCount was 0. It must be greater or equal to minCount:1 and less than or equal",
        ),
        (
            "more",
            {"mode": "System", "nodeTaints": [], "count": 2, "maxPods": 14},
            "InvalidParameter",
            "must take 30 pods, not 28",
        ),
        ("gpu", {"spotMaxPrice": -1}, "InvalidParameter", "only be set with scaleSetPriority Spot"),
        (
            "gpu",
            {"scaleSetPriority": "Spot", "mode": "System", "nodeTaints": []},
            "InvalidParameter",
            "cannot have mode System",
        ),
        ("gpu", {**SPOT, "spotMaxPrice": 0}, "InvalidParameter", "must be -1, or a positive value"),
        ("gpu", {**SPOT, "spotMaxPrice": -2}, "InvalidParameter", "the least is -1"),
        ("gpu", {**SPOT, "spotMaxPrice": 0.1234567}, "InvalidParameter", "up to five decimal places"),
        ("gpu", {"nodeTaints": ["sku=gpu:Never"]}, "InvalidParameter", "key=value:effect"),
        (
            "gpu",
            {"nodeTaints": [None]},
            "InvalidParameter",
            "nodeTaints[0]' must be of type string, not null",
        ),
        ("gpu", {"mode": "System", "nodeTaints": ["a=b:NoSchedule"]}, "SystemPoolHasRestrictedTaint", "custom taints"),
        ("gpu", {"nodeTaints": ["-sku=gpu:NoSchedule"]}, "InvalidParameter", "'-sku=gpu:NoSchedule' is invalid"),
        ("gpu", {"nodeTaints": ["a=b:NoSchedule", "a=c:NoSchedule"]}, "InvalidParameter", "each key and effect once"),
        ("gpu", {"nodeLabels": {"a b": "c"}}, "BadRequest", "Node label 'a b: c' does not meet syntax and character"),
        ("gpu", {"nodeLabels": {"a": "x y"}}, "BadRequest", "Node label 'a: x y' does not meet syntax and character"),
        (
            "gpu",
            {"nodeLabels": {"kubernetes.azure.com/x": "y"}},
            "BadRequest",
            "prefix is preserved by aks system labels",
        ),
        (
            "gpu",
            {"nodeLabels": {"k8s.io/x": "y"}},
            "BadRequest",
            "must begin with an allowed prefix (kubelet.kubernetes.io",
        ),
        ("gpu", {"count": 11}, "ErrCode_InsufficientVCPUQuota", "requested 1056, remaining 960"),
        ("gpu", {"vmSize": "Standard_D4ads_v5"}, "InvalidParameter", "has no GPU"),
        ("gpu", {**LOCAL, "osDiskSizeGB": 1025}, CANNOT_FIT, "temporary disk size of 1099511627776 bytes"),
        ("gpu", {**LOCAL, "osDiskSizeGB": 257, "vmSize": A100}, CANNOT_FIT, "a cache size of 274877906944 bytes"),
        ("sys", {**LOCAL, "vmSize": D4S, "gpuProfile": None}, "VMSizeDoesNotSupportEphemeralOS", f"size {D4S} does"),
        (
            "gpu",
            {**LOCAL, "osDiskSizeGB": 2041, "vmSize": ND_A100},
            "NotSupported",
            "greater than 2040 GB is not allowed",
        ),
        ("gpu", {**LOCAL, "scaleDownMode": "Deallocate"}, "InvalidParameter", "needs osDiskType Managed"),
        ("gpu", {**SPOT, **upgrades(maxSurge="1")}, "InvalidParameter", "Spot pools can't set max surge."),
        ("gpu", {**SPOT, **upgrades(maxUnavailable="1")}, "InvalidParameter", "Spot pools can't set maxUnavailable."),
        ("gpu", upgrades(maxSurge="0"), "InvalidParameter", "without maxSurge it needs maxUnavailable"),
        ("gpu", upgrades(maxSurge="0%", maxUnavailable="0"), "InvalidParameter", "without maxSurge it needs"),
        ("gpu", upgrades(maxSurge="one"), "InvalidParameter", "A number of nodes, or a percentage of them"),
        (
            "gpu",
            {"mode": "System", "nodeTaints": [], **upgrades(maxUnavailable="1")},
            "InvalidParameter",
            "cannot have maxUnavailable",
        ),
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


@pytest.mark.parametrize(
    ("size", "given", "gets"),
    [
        (H100, {}, (1024, "Ephemeral")),
        (H100, {"osDiskSizeGB": 0}, (1024, "Ephemeral")),
        (H100, {"osDiskSizeGB": 512}, (512, "Ephemeral")),
        (H100, {"osDiskSizeGB": 1025}, (1025, "Managed")),
        (H100, {"osDiskType": "Managed"}, (1024, "Managed")),
        (A100, {}, (512, "Managed")),
        (A100, {"osDiskSizeGB": 256}, (256, "Ephemeral")),
        (ND_A100, {}, (2040, "Ephemeral")),
        ("Standard_NC40ads_H100_v5", {}, (512, "Managed")),
        (T4, {}, (144, "Ephemeral")),  # its cache
        (T4, {"osDiskSizeGB": 150}, (150, "Managed")),  # more than its cache
        (T4, {"osDiskSizeGB": 150, "osDiskType": "Ephemeral"}, (150, "Ephemeral")),  # on its temporary disk
        (ND_A100, {"osDiskSizeGB": 2041}, (2041, "Managed")),
    ],
)
def test_a_pool_takes_its_disk_from_the_vm_size(
    cluster: Arm, size: str, given: dict[str, Any], gets: tuple[int, str]
) -> None:
    body = pool_body(vmSize=size, count=0, **{"osDiskSizeGB": None, "osDiskType": None, **given})
    assert cluster.put(pool_path(), body).status_code == 201
    shown = cluster.get(pool_path())["properties"]
    assert (shown["osDiskSizeGB"], shown["osDiskType"]) == gets


def test_a_system_pool_that_shrinks_may_have_room_for_fewer_pods(cluster: Arm) -> None:
    """As AKS lets it (Azure/AKS#1422), though it refuses to make such a pool. Other pools may be as small."""
    pool: dict[str, Any] = {"mode": "System", "nodeTaints": [], "vmSize": D4S, "gpuProfile": None, "maxPods": 10}
    for name, changes in (("more", pool | {"count": 3}), ("more", pool | {"count": 1}), ("user", {"maxPods": 10})):
        answer = cluster.put(pool_path(name), pool_body(**changes))
        assert answer.is_success, answer.text
        cluster.done()


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
    assert cluster.get(pool_path("regular"))["properties"]["upgradeSettings"] == {
        "maxSurge": "10%",
        "maxUnavailable": "0",
    }


def test_quota_is_shown_as_used(cluster: Arm) -> None:
    cluster.put(pool_path(), pool_body())
    path = f"/subscriptions/{SUBSCRIPTION.subscription_id}/providers/Microsoft.Compute/locations/eastus/usages"
    usages = cluster.call("GET", path, **{"api-version": "2024-07-01"}).json()["value"]
    shown = {usage["name"]["value"]: (usage["currentValue"], usage["limit"]) for usage in usages}
    assert shown["standardNDSH100v5Family"] == (192, 960)
    assert shown["cores"] == (200 + 4 * 24, 4000), "with what is reserved"
    names = {usage["name"]["value"]: usage["name"]["localizedValue"] for usage in usages}
    assert (names["cores"], names["lowPriorityCores"]) == ("Total Regional vCPUs", "Total Regional Low-priority vCPUs")
