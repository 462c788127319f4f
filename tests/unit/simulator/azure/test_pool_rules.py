from __future__ import annotations

from typing import Any

import pytest

from tests.support.arm import CLUSTER, SUBSCRIPTION, Arm, cluster_body, pool_body, pool_path
from tests.support.networks import make

D4S = "Standard_D4s_v5"


def upgrades(**settings: str) -> dict[str, Any]:
    return {"upgradeSettings": settings}


def test_reports_all_errors_of_a_body_at_once(cluster: Arm) -> None:
    error = cluster.put(pool_path(), pool_body(count=-1, osSKU="x")).json()["error"]
    assert [detail["target"] for detail in error["details"]] == ["properties.count", "properties.osSKU"]


def test_a_pool_has_defaults_and_scales(cluster: Arm) -> None:
    make(cluster, pool_path(), pool_body())
    assert len(cluster.node_names()) == 4
    shown = cluster.get(pool_path())["properties"]
    assert (shown["provisioningState"], shown["osSKU"], shown["currentOrchestratorVersion"]) == (
        "Succeeded",
        "Ubuntu",
        "1.35.4",
    )
    for count in (3, 0, 2):
        make(cluster, pool_path(), pool_body(count=count))
        assert len(cluster.node_names()) == 2 + count


def test_a_system_pool_may_shrink_below_the_minimum_of_pods(cluster: Arm) -> None:
    """AKS allows it (Azure/AKS#1422), but not for a new system pool."""
    pool: dict[str, Any] = {"mode": "System", "nodeTaints": [], "vmSize": D4S, "gpuProfile": None, "maxPods": 10}
    for name, changes in (("more", pool | {"count": 3}), ("more", pool | {"count": 1}), ("user", {"maxPods": 10})):
        answer = cluster.put(pool_path(name), pool_body(**changes))
        assert answer.is_success, answer.text
        cluster.done()


def test_a_spot_pool_has_its_taint_and_a_separate_quota(cluster: Arm) -> None:
    make(cluster, pool_path("reg"), pool_body(count=10))
    shown = make(cluster, pool_path("spot"), pool_body(scaleSetPriority="Spot", count=10))["properties"]
    assert "kubernetes.azure.com/scalesetpriority=spot:NoSchedule" in shown["nodeTaints"]
    assert (shown["spotMaxPrice"], shown["scaleSetEvictionPolicy"]) == (-1, "Delete")
    _, code, message = cluster.refusal(cluster.put(pool_path("spot2"), pool_body(scaleSetPriority="Spot", count=1)))
    assert code == "ErrCode_InsufficientVCPUQuota"
    assert "remaining 0 for family lowPriorityCores" in message


@pytest.mark.parametrize(
    ("settings", "status"), [({"maxSurge": "33%"}, 400), ({"maxSurge": "0", "maxUnavailable": "1"}, 200)]
)
def test_an_upgrade_needs_quota_for_a_surge_node(cluster: Arm, settings: dict[str, str], status: int) -> None:
    make(cluster, pool_path(), pool_body(count=10, **upgrades(**settings)))
    make(cluster, CLUSTER, cluster_body(kubernetesVersion="1.36"))
    answer = cluster.put(pool_path(), pool_body(count=10, orchestratorVersion="1.36", **upgrades(**settings)))
    assert answer.status_code == status
    if status == 400:
        assert "requested 1056, remaining 960" in cluster.refusal(answer)[2], "since 1.35, one surge node is enough"


def test_spot_pools_have_no_upgrade_settings(cluster: Arm) -> None:
    made = cluster.put(pool_path(), pool_body(scaleSetPriority="Spot")).json()
    assert made["properties"]["upgradeSettings"] == {}


def test_shows_the_used_quota(cluster: Arm) -> None:
    cluster.put(pool_path(), pool_body())
    path = f"/subscriptions/{SUBSCRIPTION.subscription_id}/providers/Microsoft.Compute/locations/eastus/usages"
    usages = cluster.call("GET", path, **{"api-version": "2024-07-01"}).json()["value"]
    shown = {usage["name"]["value"]: (usage["currentValue"], usage["limit"]) for usage in usages}
    assert shown["standardNDSH100v5Family"] == (192, 960)
    assert shown["cores"] == (200 + 4 * 24, 4000), "with reserved capacity"
    names = {usage["name"]["value"]: usage["name"]["localizedValue"] for usage in usages}
    assert (names["cores"], names["lowPriorityCores"]) == ("Total Regional vCPUs", "Total Regional Low-priority vCPUs")
