from __future__ import annotations

from typing import Any

import pytest

from k8s.objects import Object
from simulator.azure.autoscaler.backoff import FIRST_S, MOST_S
from simulator.azure.autoscaler.profile import PACE
from simulator.azure.types.agent_pool import life
from simulator.world.faults import new_fault
from tests.support.arm import pool_path
from tests.support.scaled_cluster import QUIET, START_UP, TEN_MINUTES, ScaledCluster, autoscaler_status, make_pool, pod
from tests.support.sizes import H100, T4


def make_spot_pool(scaled: ScaledCluster, **properties: Any) -> None:
    spot = "kubernetes.azure.com/scalesetpriority"
    marks = {"nodeTaints": [f"{spot}=spot:NoSchedule"], "nodeLabels": {spot: "spot", "ai-on-aks/gpu": "true"}}
    make_pool(scaled, "spot", vmSize=T4, scaleSetPriority="Spot", **(marks | properties))


def set_priorities(scaled: ScaledCluster, text: str) -> None:
    metadata = {"name": "cluster-autoscaler-priority-expander", "namespace": "kube-system"}
    data = {"priorities": text}
    scaled.kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def test_the_priority_expander_selects_the_highest_priority(scaled: ScaledCluster) -> None:
    make_pool(scaled, "ondemand", vmSize=T4)
    make_spot_pool(scaled)
    scaled.profile(expander="priority")
    set_priorities(scaled, "10:\n  - .*ondemand.*\n50:\n  - .*spot.*\n")
    scaled.add(pod("one", gpu=1))
    scaled.look()
    assert (len(scaled.nodes("spot")), len(scaled.nodes("ondemand"))) == (1, 0)


@pytest.mark.parametrize(
    ("fault", "got", "message"),
    [
        ({"kind": "capacity", "spot": 0}, 0, "Azure failed to provision a node for this node group"),
        ({"kind": "capacity", "spot": 1}, 1, "Azure failed to provision a node for this node group"),
        ({"kind": "price", "usd": 0.25}, 0, "Azure failed to provision a node for this node group"),
        (None, 0, "OperationNotAllowed: Operation could not be completed as it results in exceeding approved"),
    ],
    ids=["no Spot machine", "only one Spot machine", "above the maximum price", "no Spot quota"],
)
def test_falls_back_to_another_pool_without_spot_machines(
    scaled: ScaledCluster, fault: dict[str, Any] | None, got: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_pool(scaled, "ondemand", vmSize=T4)
    make_spot_pool(scaled, spotMaxPrice=0.2)
    scaled.profile(expander="priority")
    set_priorities(scaled, "10: [ondemand]\n50: [spot]\n")
    if fault:
        scaled.arm.server.world.faults.fault(new_fault(size=T4, **fault))
    else:
        monkeypatch.setitem(scaled.arm.server.world.subscription.quota, "lowPriorityCores", 7)
    scaled.add(pod("one", gpu=1), pod("two", gpu=1))
    scaled.looks(0, 2, 2, 2)
    assert (len(scaled.nodes("spot")), len(scaled.nodes("ondemand"))) == (got, 2 - got)
    assert message in scaled.events("FailedToScaleUpGroup")[0]
    assert scaled.arm.get(pool_path("spot"))["properties"]["count"] == got, "requests no more machines"
    groups = {each["name"].split("-")[1]: each["scaleUp"] for each in autoscaler_status(scaled)["nodeGroups"]}
    assert groups["spot"]["status"] == "Backoff"
    assert groups["spot"]["backoffInfo"]["errorMessage"].startswith(message)
    assert groups["ondemand"] == {"status": "NoActivity"}


def test_doubles_the_backoff_after_each_refusal(scaled: ScaledCluster) -> None:
    make_spot_pool(scaled)
    scaled.arm.server.world.faults.fault(new_fault("capacity", size=T4, spot=0))
    scaled.add(pod("one", gpu=1))
    scaled.looks(0, 1)
    for lasts, refusals in ((FIRST_S, 1), (2 * FIRST_S, 2), (4 * FIRST_S, 3), (MOST_S, 4), (MOST_S, 5)):
        scaled.looks(lasts - 3)
        assert len(scaled.events("FailedToScaleUpGroup")) == refusals, "still in backoff"
        scaled.looks(4, 1)
    assert scaled.events("NotTriggerScaleUp") == ["pod didn't trigger scale-up: 1 in backoff after failed scale-up"]
    scaled.arm.server.world.faults.heal()
    scaled.looks(MOST_S + 1, 1)
    assert len(scaled.nodes("spot")) == 1


def test_gives_up_missing_machines_of_other_requests_later(scaled: ScaledCluster) -> None:
    scaled.arm.server.world.faults.fault(new_fault("capacity", size=H100))
    make_pool(scaled, count=2)
    scaled.looks(0, 15 * 60 / PACE - 1)
    found = scaled.arm.get(pool_path())["properties"]
    assert (found["provisioningState"], found["count"]) == ("Failed", 2), "the user sees the failure first"
    scaled.look(2)
    assert scaled.arm.get(pool_path())["properties"]["count"] == 0


@pytest.mark.parametrize(
    ("expander", "taken"), [("least-waste", "small"), ("most-pods", "large"), ("priority", None), ("random", "any")]
)
def test_other_expanders_select_a_pool(scaled: ScaledCluster, expander: str, taken: str | None) -> None:
    make_pool(scaled, "large", maxCount=1)
    make_pool(scaled, "small", vmSize=T4, maxCount=1)
    scaled.profile(expander=expander)
    scaled.add(pod("one", gpu=1), pod("two", gpu=1))
    scaled.look()
    grown = [name for name in ("large", "small") if scaled.nodes(name)]
    assert grown == {"any": grown[:1], None: []}.get(taken, [taken]), "priority lacks its ConfigMap"


@pytest.mark.parametrize(
    ("text", "reason", "grows"),
    [
        ("50: [other]\n", "PriorityConfigMapNoGroupMatched", True),
        ("50: [other]\n", "PriorityConfigMapNotMatchedGroup", True),
        ("high: [gpu]\n", "PriorityConfigMapInvalid", False),
        ("50: ['*gpu']\n", "PriorityConfigMapInvalid", False),
    ],
)
def test_reports_priorities_that_do_not_match(scaled: ScaledCluster, text: str, reason: str, grows: bool) -> None:
    make_pool(scaled)
    scaled.profile(expander="priority")
    set_priorities(scaled, text)
    scaled.add(pod("one", gpu=8))
    scaled.look()
    assert len(scaled.events(reason)) == 1
    assert bool(scaled.nodes()) is grows


# -- more nodes --------------------------------------------------------------------------------------------------------


def test_adds_nodes_for_pending_pods(scaled: ScaledCluster) -> None:
    make_pool(scaled)
    scaled.add(*(pod(name, gpu=8, mlnxnics=8) for name in ("one", "two", "three")))
    scaled.look()
    assert len(scaled.nodes()) == 2
    assert scaled.arm.get(pool_path())["properties"]["count"] == 2
    group = scaled.nodes()[0].removesuffix("000000")
    assert scaled.events("TriggeredScaleUp") == [f"pod triggered scale-up: [{{{group} 0->2 (max: 2)}}]"] * 2
    assert scaled.events("ScaledUpGroup") == [f"Scale-up: setting group {group} size to 2 instead of 0 (max: 2)"]
    scaled.looks(2, 2)
    assert scaled.events("NotTriggerScaleUp") == ["pod didn't trigger scale-up: 1 max node group size reached"]


def test_a_new_node_has_fifteen_minutes_to_advertise_gpus(scaled: ScaledCluster) -> None:
    """Then its pods get another node, and it is removed (clusterstate.go, MaxNodeStartupTime)."""
    scaled.slow = True
    make_pool(scaled, count=1)
    scaled.add(pod("one", gpu=8, mlnxnics=8))
    scaled.looks(0, START_UP - 1)
    (first,) = scaled.nodes()
    group = autoscaler_status(scaled)["nodeGroups"][0]
    counts = {"total": 1, "ready": 0, "notStarted": 1, "unready": {"total": 0}}
    assert (group["health"]["nodeCounts"]["registered"], group["scaleUp"]["status"]) == (counts, "InProgress")
    scaled.slow = False
    scaled.look(2)
    assert len(scaled.nodes()) == 2
    scaled.add(pod("two", scaled.nodes()[1], gpu=8))
    scaled.looks(1, 2 * TEN_MINUTES, 1, 1)
    assert first not in scaled.nodes(), "unready for twenty minutes"


@pytest.mark.parametrize(
    "settings",
    [{"scale_down_unready_time": "60m"}, {"ok_total_unready_count": "0", "max_total_unready_percentage": "0"}],
    ids=["unready time", "health"],
)
def test_the_profile_keeps_a_slow_node(scaled: ScaledCluster, settings: dict[str, str]) -> None:
    scaled.slow = True
    make_pool(scaled, count=1)
    scaled.profile(**settings)
    scaled.looks(0, START_UP, 1, 2 * TEN_MINUTES, 1, 1)
    assert len(scaled.nodes()) == 1


def test_a_scale_up_with_slow_nodes_times_out(scaled: ScaledCluster) -> None:
    """A node is upcoming until it advertises GPUs (clusterstate.go, updateScaleRequests)."""
    scaled.slow = True
    make_pool(scaled)
    scaled.profile(max_node_provision_time="6m")
    scaled.add(pod("one", gpu=8))
    scaled.looks(0, 119)
    assert not scaled.events("ScaleUpTimedOut")
    scaled.look(2)
    assert scaled.events("ScaleUpTimedOut")
    assert autoscaler_status(scaled)["nodeGroups"][0]["scaleUp"]["status"] == "Backoff"
    assert len(scaled.nodes()) == 1


def test_a_pool_with_too_many_unready_nodes_does_not_grow(scaled: ScaledCluster) -> None:
    scaled.slow = True
    make_pool(scaled, count=2, maxCount=4)
    scaled.profile(ok_total_unready_count="1")
    scaled.add(*(pod(name, gpu=8) for name in ("one", "two", "three")))
    scaled.look()
    assert scaled.events("NotTriggerScaleUp") == ["pod didn't trigger scale-up: 1 not ready for scale-up"]
    assert len(scaled.nodes()) == 2


@pytest.mark.parametrize(("version", "nodes"), [("1.34.1", 1), ("1.35.4", 0)])
def test_a_fixed_node_without_gpus_blocks_scale_ups_since_1_35(scaled: ScaledCluster, version: str, nodes: int) -> None:
    """kubernetes/autoscaler#10301: the pods get no event."""
    scaled.slow = True
    make_pool(scaled)
    make_pool(scaled, "fixed", vmSize=T4, count=1, enableAutoScaling=False, minCount=None, maxCount=None, tags=None)
    scaled.set_version(version)
    scaled.add(pod("one", gpu=8, mlnxnics=8))
    scaled.looks(0, 2)
    assert (len(scaled.nodes()), scaled.events("NotTriggerScaleUp")) == (nodes, [])
    scaled.drivers(scaled.nodes("fixed")[0])
    scaled.look(2)
    assert len(scaled.nodes()) == 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"nodeSelector": {"agentpool": "other"}}, "node(s) didn't match Pod's node affinity/selector"),
        ({"tolerations": []}, "node(s) had untolerated taint {sku: gpu}"),
        (
            {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "9"}}}]},
            "Insufficient nvidia.com/gpu",
        ),
        ({"containers": [{"name": "main", "resources": {"requests": {"cpu": "97"}}}]}, "Insufficient cpu"),
    ],
)
def test_adds_no_node_for_a_pod_that_does_not_fit(scaled: ScaledCluster, change: Object, why: str) -> None:
    make_pool(scaled)
    waiting = pod("one", gpu=8)
    scaled.add(waiting | {"spec": waiting["spec"] | change})
    scaled.looks(0, 2)
    assert scaled.nodes() == []
    assert scaled.events("NotTriggerScaleUp") == [f"pod didn't trigger scale-up: 1 {why}"], "once"


@pytest.mark.parametrize("change", [{"priority": -11}, {"schedulerName": "volcano", "gated": True}])
def test_adds_no_node_for_expendable_or_gated_pods(scaled: ScaledCluster, change: Object) -> None:
    make_pool(scaled)
    waiting = pod("one", gpu=8)
    if change.pop("gated", False):
        waiting["status"]["conditions"][0] = waiting["status"]["conditions"][0] | {"reason": "Schedulable"}
    scaled.add(waiting | {"spec": waiting["spec"] | change})
    scaled.look()
    assert scaled.nodes() == []


def test_does_not_scale_a_fixed_pool(scaled: ScaledCluster) -> None:
    make_pool(scaled, count=1, enableAutoScaling=False, minCount=None, maxCount=None)
    scaled.add(pod("one", gpu=8), pod("two", gpu=8))
    scaled.looks(0, *QUIET)
    assert len(scaled.nodes()) == 1


def test_packs_pods_onto_few_nodes(scaled: ScaledCluster) -> None:
    make_pool(scaled, maxCount=3)
    scaled.add(*(pod(f"index-{number}", gpu=1) for number in range(17)))
    scaled.look()
    assert len(scaled.nodes()) == 3, "8 + 8 + 1"


def test_keeps_the_minimum_count(scaled: ScaledCluster) -> None:
    make_pool(scaled, count=2, minCount=2)
    record, _ = life.by_node(scaled.arm.server.world.store.all(life.TYPE))[scaled.nodes()[0]]
    life.remove(scaled.arm.server.world, record, [0])
    scaled.look()
    assert [name[-6:] for name in scaled.nodes()] == ["000001", "000002"], "a new node with a new name"
