"""The cluster autoscaler: nodes for pods that wait, of the pool that the expander takes, and none that nobody needs."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from diagnosis.cluster import Cluster, Object
from diagnosis.report import report
from simulator.azure.autoscaler.backoff import FIRST_S, MOST_S
from simulator.azure.autoscaler.profile import PACE, Profile
from simulator.azure.types.agent_pool import life
from simulator.world.faults import new_fault
from tests.support.arm import H100, Arm, pool_body, pool_path
from tests.support.scaled_cluster import T4, ScaledCluster, pod

RDMA_TAG = {"k8s.io_cluster-autoscaler_node-template_resources_nvidia.com_mlnxnics": "8"}
TEN_MINUTES = 600 / PACE
UNSAFE = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
QUIET = (TEN_MINUTES, 1, TEN_MINUTES, 1)
"""Looks that are enough for what nobody needs to go: noticed, grown patient, marked, deleted."""


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "ALLOCATION_S", 0.01)


@pytest.fixture
def scaled(cluster: Arm) -> ScaledCluster:
    return ScaledCluster(cluster)


def make(scaled: ScaledCluster, name: str = "gpu", **properties: Any) -> None:
    given = {"count": 0, "enableAutoScaling": True, "minCount": 0, "maxCount": 2, "tags": RDMA_TAG} | properties
    answer = scaled.arm.put(pool_path(name), pool_body(**given))
    assert answer.status_code == 201, answer.text
    scaled.arm.done()


def make_spot(scaled: ScaledCluster, **properties: Any) -> None:
    spot = "kubernetes.azure.com/scalesetpriority"
    marks = {"nodeTaints": [f"{spot}=spot:NoSchedule"], "nodeLabels": {spot: "spot", "ai-on-aks/gpu": "true"}}
    make(scaled, "spot", vmSize=T4, scaleSetPriority="Spot", **(marks | properties))


def set_priorities(scaled: ScaledCluster, text: str) -> None:
    metadata = {"name": "cluster-autoscaler-priority-expander", "namespace": "kube-system"}
    data = {"priorities": text}
    scaled.kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def status(scaled: ScaledCluster) -> Object:
    found = scaled.kube.find("v1", "ConfigMap", "cluster-autoscaler-status", "kube-system")
    assert found
    read: Object = yaml.safe_load(found["data"]["status"])
    return read


# -- more nodes --------------------------------------------------------------------------------------------------------


def test_nodes_come_because_pods_wait(scaled: ScaledCluster) -> None:
    make(scaled)
    scaled.add(*(pod(name, gpu=8, mlnxnics=8) for name in ("one", "two", "three")))
    scaled.look()
    assert len(scaled.nodes()) == 2
    assert scaled.arm.get(pool_path())["properties"]["count"] == 2
    group = scaled.nodes()[0].removesuffix("000000")
    assert scaled.told("TriggeredScaleUp") == [f"pod triggered scale-up: [{{{group} 0->2 (max: 2)}}]"] * 2
    assert scaled.told("ScaledUpGroup") == [f"Scale-up: setting group {group} size to 2 instead of 0 (max: 2)"]
    scaled.looks(2, 2)
    assert scaled.told("NotTriggerScaleUp") == ["pod didn't trigger scale-up: 1 max node group size reached"], (
        "of three"
    )


def test_nodes_whose_devices_are_on_their_way_are_waited_for(scaled: ScaledCluster) -> None:
    make(scaled, count=1)
    scaled.add(pod("one", gpu=8, mlnxnics=8))
    scaled.looks(0, 2)
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
def test_no_node_comes_for_a_pod_that_could_not_run_on_it(scaled: ScaledCluster, change: Object, why: str) -> None:
    make(scaled)
    waiting = pod("one", gpu=8)
    scaled.add(waiting | {"spec": waiting["spec"] | change})
    scaled.looks(0, 2)
    assert scaled.nodes() == []
    assert scaled.told("NotTriggerScaleUp") == [f"pod didn't trigger scale-up: 1 {why}"], "once, however often it looks"


@pytest.mark.parametrize("change", [{"priority": -11}, {"schedulerName": "volcano", "gated": True}])
def test_pods_that_can_be_done_without_or_wait_for_something_else_bring_none(
    scaled: ScaledCluster, change: Object
) -> None:
    make(scaled)
    waiting = pod("one", gpu=8)
    if change.pop("gated", False):
        waiting["status"]["conditions"][0] = waiting["status"]["conditions"][0] | {"reason": "Schedulable"}
    scaled.add(waiting | {"spec": waiting["spec"] | change})
    scaled.look()
    assert scaled.nodes() == []


def test_a_pool_without_autoscaling_stays_as_it_is(scaled: ScaledCluster) -> None:
    make(scaled, count=1, enableAutoScaling=False, minCount=None, maxCount=None)
    scaled.add(pod("one", gpu=8), pod("two", gpu=8))
    scaled.looks(0, *QUIET)
    assert len(scaled.nodes()) == 1


def test_a_batch_of_thousands_is_packed_onto_as_many_nodes_as_it_needs(scaled: ScaledCluster) -> None:
    make(scaled, maxCount=3)
    scaled.add(*(pod(f"index-{number}", gpu=1) for number in range(17)))
    scaled.look()
    assert len(scaled.nodes()) == 3, "8 + 8 + 1"


def test_the_least_count_is_kept_to(scaled: ScaledCluster) -> None:
    make(scaled, count=2, minCount=2)
    record, _ = life.by_node(scaled.arm.server.world.store.all(life.TYPE))[scaled.nodes()[0]]
    life.remove(scaled.arm.server.world, record, [0])
    scaled.look()
    assert [name[-6:] for name in scaled.nodes()] == ["000001", "000002"], "another, with a name of its own"


# -- which pool --------------------------------------------------------------------------------------------------------


def test_the_priority_expander_takes_the_highest_number_that_matches(scaled: ScaledCluster) -> None:
    make(scaled, "ondemand", vmSize=T4)
    make_spot(scaled)
    scaled.profile(expander="priority")
    set_priorities(scaled, "10:\n  - .*ondemand.*\n50:\n  - .*spot.*\n")
    scaled.add(pod("one", gpu=1))
    scaled.look()
    assert (len(scaled.nodes("spot")), len(scaled.nodes("ondemand"))) == (1, 0)


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        ({"spot": 0}, "Azure failed to provision a node for this node group"),
        ({"spot": 1}, "Azure failed to provision a node for this node group"),
        (None, "OperationNotAllowed: Operation could not be completed as it results in exceeding approved"),
    ],
    ids=["no Spot machine", "only one Spot machine", "no Spot quota"],
)
def test_the_pool_to_fall_back_to_is_taken_once_azure_refuses_spot(
    scaled: ScaledCluster, refusal: dict[str, Any] | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(scaled, "ondemand", vmSize=T4)
    make_spot(scaled)
    scaled.profile(expander="priority")
    set_priorities(scaled, "10: [ondemand]\n50: [spot]\n")
    if refusal:
        scaled.arm.server.world.faults.fault(new_fault("capacity", size=T4, **refusal))
    else:
        monkeypatch.setitem(scaled.arm.server.world.subscription.quota, "lowPriorityCores", 7)
    scaled.add(pod("one", gpu=1), pod("two", gpu=1))
    scaled.looks(0, 2, 2, 2)
    got = (refusal or {"spot": 0})["spot"]
    assert (len(scaled.nodes("spot")), len(scaled.nodes("ondemand"))) == (got, 2 - got)
    assert said in scaled.told("FailedToScaleUpGroup")[0]
    assert scaled.arm.get(pool_path("spot"))["properties"]["count"] == got, "no more is asked for what there is not"
    groups = {each["name"].split("-")[1]: each["scaleUp"] for each in status(scaled)["nodeGroups"]}
    assert groups["spot"]["status"] == "Backoff"
    assert groups["spot"]["backoffInfo"]["errorMessage"].startswith(said)
    assert groups["ondemand"] == {"status": "NoActivity"}


def test_a_price_above_the_pools_maximum_is_a_refusal_too(scaled: ScaledCluster) -> None:
    make(scaled, "ondemand", vmSize=T4)
    make_spot(scaled, spotMaxPrice=0.2)
    scaled.profile(expander="priority")
    set_priorities(scaled, "10: [ondemand]\n50: [spot]\n")
    scaled.arm.server.world.faults.fault(new_fault("price", size=T4, usd=0.25))
    scaled.add(pod("one", gpu=1))
    scaled.looks(0, 2, 2)
    assert (len(scaled.nodes("spot")), len(scaled.nodes("ondemand"))) == (0, 1)
    assert "Azure failed to provision a node" in scaled.told("FailedToScaleUpGroup")[0]


def test_a_pool_that_was_refused_is_left_alone_twice_as_long_each_time(scaled: ScaledCluster) -> None:
    make_spot(scaled)
    scaled.arm.server.world.faults.fault(new_fault("capacity", size=T4, spot=0))
    scaled.add(pod("one", gpu=1))
    scaled.looks(0, 1)
    for lasts, refusals in ((FIRST_S, 1), (2 * FIRST_S, 2), (4 * FIRST_S, 3), (MOST_S, 4), (MOST_S, 5)):
        scaled.looks(lasts - 3)
        assert len(scaled.told("FailedToScaleUpGroup")) == refusals, "still left alone"
        scaled.looks(4, 1)
    assert scaled.told("NotTriggerScaleUp") == ["pod didn't trigger scale-up: 1 in backoff after failed scale-up"]
    scaled.arm.server.world.faults.heal()
    scaled.looks(MOST_S + 1, 1)
    assert len(scaled.nodes("spot")) == 1


def test_machines_that_somebody_else_asked_for_in_vain_are_given_up_later(scaled: ScaledCluster) -> None:
    scaled.arm.server.world.faults.fault(new_fault("capacity", size=H100))
    make(scaled, count=2)
    scaled.looks(0, 15 * 60 / PACE - 1)
    found = scaled.arm.get(pool_path())["properties"]
    assert (found["provisioningState"], found["count"]) == ("Failed", 2), "who asked sees that first"
    scaled.look(2)
    assert scaled.arm.get(pool_path())["properties"]["count"] == 0


@pytest.mark.parametrize(
    ("expander", "taken"), [("least-waste", "small"), ("most-pods", "large"), ("priority", None), ("random", "any")]
)
def test_other_expanders(scaled: ScaledCluster, expander: str, taken: str | None) -> None:
    make(scaled, "large", maxCount=1)
    make(scaled, "small", vmSize=T4, maxCount=1)
    scaled.profile(expander=expander)
    scaled.add(pod("one", gpu=1), pod("two", gpu=1))
    scaled.look()
    grown = [name for name in ("large", "small") if scaled.nodes(name)]
    assert grown == {"any": grown[:1], None: []}.get(taken, [taken]), "priority has no ConfigMap to go by"


@pytest.mark.parametrize(
    ("text", "reason", "grows"),
    [
        ("50: [other]\n", "PriorityConfigMapNoGroupMatched", True),
        ("50: [other]\n", "PriorityConfigMapNotMatchedGroup", True),
        ("high: [gpu]\n", "PriorityConfigMapInvalid", False),
        ("50: ['*gpu']\n", "PriorityConfigMapInvalid", False),
    ],
)
def test_priorities_that_say_nothing_of_a_pool_are_told(
    scaled: ScaledCluster, text: str, reason: str, grows: bool
) -> None:
    make(scaled)
    scaled.profile(expander="priority")
    set_priorities(scaled, text)
    scaled.add(pod("one", gpu=8))
    scaled.look()
    assert len(scaled.told(reason)) == 1
    assert bool(scaled.nodes()) is grows


# -- fewer nodes -------------------------------------------------------------------------------------------------------


def test_nodes_that_nobody_needs_go_and_no_others(scaled: ScaledCluster) -> None:
    make(scaled, count=2)
    first, second = scaled.nodes()
    scaled.add(pod("driver-1", first, "DaemonSet"), pod("driver-2", second, "DaemonSet"), pod("two", second, gpu=8))
    scaled.look()
    scaled.look(TEN_MINUTES - 1)
    assert len(scaled.nodes()) == 2
    scaled.looks(1, 1)
    assert scaled.nodes() == [second], "not the last one, but the empty one"
    assert scaled.told("ScaleDownEmpty") == [f'Scale-down: removing empty node "{first}"']
    scaled.kube.delete("v1", "Pod", "two", "ai")
    scaled.looks(1, *QUIET)
    assert scaled.nodes() == []


def test_an_update_of_the_pool_keeps_the_nodes_that_are_left(scaled: ScaledCluster) -> None:
    make(scaled, count=2)
    _, second = scaled.nodes()
    scaled.add(pod("two", second, gpu=8))
    scaled.looks(0, *QUIET)
    bounds = {"count": 1, "enableAutoScaling": True, "minCount": 0, "maxCount": 2}
    scaled.arm.put(pool_path(), pool_body(**bounds, nodeLabels={"team": "a"}))
    scaled.arm.done()
    assert scaled.nodes() == [second]


def test_a_node_that_is_little_used_is_emptied_where_its_pods_have_room_elsewhere(scaled: ScaledCluster) -> None:
    make(scaled, count=2)
    first, second = scaled.nodes()
    scaled.add(pod("one", first, gpu=1), pod("two", second, gpu=5))
    scaled.looks(0, TEN_MINUTES)
    assert "utilization: 0.125, pods to reschedule: ai/one" in scaled.told("ScaleDown")[-1]
    taints = [node["spec"]["taints"] for node in scaled.kube.list("v1", "Node") if node["metadata"]["name"] == first]
    assert "ToBeDeletedByClusterAutoscaler" in [taint["key"] for taint in taints[0]]
    scaled.looks(1, 1)
    assert scaled.nodes() == [second]
    assert [each["metadata"]["name"] for each in scaled.kube.list("v1", "Pod")] == ["two"], "one was evicted"


@pytest.mark.parametrize(
    ("change", "settings"),
    [
        ({"ownerReferences": []}, {}),
        ({"annotations": UNSAFE}, {}),
        ({"namespace": "kube-system"}, {}),
        ({}, {"skip_nodes_with_local_storage": "true"}),
        ({}, {"scale_down_utilization_threshold": "0.1"}),
        ({}, {"scale_down_unneeded_time": "60m"}),
    ],
    ids=["no controller", "not safe to evict", "of the system", "local storage", "used enough", "patience"],
)
def test_what_keeps_a_node(scaled: ScaledCluster, change: Object, settings: dict[str, str]) -> None:
    make(scaled, count=2)
    scaled.profile(**settings)
    first, second = scaled.nodes()
    kept = pod("one", first, gpu=1)
    kept["metadata"] |= change
    kept["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    scaled.add(kept, pod("two", second, gpu=5))
    scaled.looks(0, *QUIET)
    assert len(scaled.nodes()) == 2


def test_a_budget_that_forbids_it_in_the_middle_brings_the_node_back(scaled: ScaledCluster) -> None:
    make(scaled, count=2)
    scaled.profile(max_graceful_termination_sec="5")
    first, second = scaled.nodes()
    scaled.add(pod("one", first, labels={"app": "x"}, gpu=1), pod("two", second, gpu=5))
    scaled.looks(0, TEN_MINUTES)
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "x", "namespace": "ai"}}
    scaled.add(budget | {"spec": {"selector": {"matchLabels": {"app": "x"}}}, "status": {"disruptionsAllowed": 0}})
    scaled.looks(1, 20)
    assert scaled.told("ScaleDownFailed") == ["failed to drain the node, aborting ScaleDown"]
    assert "ToBeDeleted" not in str(scaled.kube.list("v1", "Node"))
    assert len(scaled.nodes()) == 2


def test_marks_of_one_that_was_stopped_are_taken_off(scaled: ScaledCluster) -> None:
    make(scaled, count=2)
    first, second = scaled.nodes()
    scaled.add(pod("one", first, gpu=1), pod("two", second, gpu=5))
    scaled.looks(0, TEN_MINUTES)
    assert "ToBeDeleted" in str(scaled.kube.list("v1", "Node"))
    scaled.scaler = scaled.another()
    scaled.look()
    assert "ToBeDeleted" not in str(scaled.kube.list("v1", "Node"))


def test_nothing_is_done_while_too_much_of_the_cluster_is_broken(scaled: ScaledCluster) -> None:
    make(scaled, count=2)
    scaled.sync()
    scaled.profile(ok_total_unready_count="0")
    for name in scaled.nodes():
        body = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
        scaled.kube.patch("v1", "Node", name, None, body)
    scaled.looks(0, *QUIET)
    assert len(scaled.nodes()) == 2
    assert status(scaled)["clusterWide"]["health"] == {"status": "Unhealthy"}


# -- the profile -------------------------------------------------------------------------------------------------------


def test_times_of_the_profile_pass_twenty_times_as_fast() -> None:
    assert Profile().patience_s("scale-down-unneeded-time") == 30
    assert Profile({"scale-down-unneeded-time": "2m"}).patience_s("scale-down-unneeded-time") == 6
    assert Profile({"scan-interval": "60"}).interval_s == 3
    assert Profile().interval_s == 2, "no oftener, whatever it says"
    assert Profile({"scale-down-delay-after-delete": "20s"}).after_delete_s == 1


# -- diagnosis ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capacity", "why"),
    [
        (True, "the autoscaler adds no node with ai-on-aks/gpu=true: the pool has reached its autoscale.max (2)"),
        (
            False,
            "the autoscaler adds no node with ai-on-aks/gpu=true for now, and tries again within 30 minutes: "
            "pool gpu: provisioning-state-failed: Azure failed to provision a node for this node group",
        ),
    ],
    ids=["two nodes at most for three pods", "Azure has none"],
)
def test_diagnosis_reads_what_it_tells(scaled: ScaledCluster, capacity: bool, why: str) -> None:
    make(scaled)
    if not capacity:
        scaled.arm.server.world.faults.fault(new_fault("capacity", size=H100))
    owner = [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "train"}]
    metadata = {"name": "train", "namespace": "ai", "uid": "train"}
    scaled.add({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {}})
    for name in ("one", "two", "three"):
        waiting = pod(name, gpu=8, mlnxnics=8)
        scaled.add(waiting | {"metadata": waiting["metadata"] | {"ownerReferences": owner}})
    scaled.looks(0, 2, 2)
    cluster = Cluster(lambda kind, namespace: scaled.kube.list(kind.api_version, kind.name, namespace or None))
    assert why in [finding.why for finding in report(cluster, "ai", "train").findings]
