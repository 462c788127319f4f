"""ARM's rules of agent pools: what it refuses, with which code, and what it fills in."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.arm import CLUSTER, SUBSCRIPTION, Arm, cluster_body, pool_body, pool_path
from tests.support.case_files import case_table

SPOT = {"scaleSetPriority": "Spot"}
A100, D4S = "Standard_NC24ads_A100_v4", "Standard_D4s_v5"


def upgrades(**settings: str) -> dict[str, Any]:
    return {"upgradeSettings": settings}


def test_all_problems_of_a_body_are_told_at_once(cluster: Arm) -> None:
    error = cluster.put(pool_path(), pool_body(count=-1, osSKU="x")).json()["error"]
    assert [detail["target"] for detail in error["details"]] == ["properties.count", "properties.osSKU"]


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


@case_table(__file__, "disks", file="pool_disks")
def test_a_pool_takes_its_disk_from_the_vm_size(
    cluster: Arm, size: str, given: dict[str, Any], gets: list[Any]
) -> None:
    body = pool_body(vmSize=size, count=0, **{"osDiskSizeGB": None, "osDiskType": None, **given})
    assert cluster.put(pool_path(), body).status_code == 201
    shown = cluster.get(pool_path())["properties"]
    assert [shown["osDiskSizeGB"], shown["osDiskType"]] == gets


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
