from __future__ import annotations

from fractions import Fraction

import pytest

from diagnosis.cluster import Cluster
from diagnosis.report import report
from k8s.objects import Object
from simulator.azure.autoscaler.profile import Profile
from simulator.azure.autoscaler.scale_down import utilization
from simulator.azure.ids import parse_id
from simulator.world.faults import new_fault
from tests.support.arm import CLUSTER, pool_body, pool_path
from tests.support.scaled_cluster import (
    QUIET,
    START_UP,
    TEN_MINUTES,
    ScaledCluster,
    autoscaler_status,
    make_pool,
    pod,
)
from tests.support.sizes import H100

UNSAFE = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}


# -- fewer nodes -------------------------------------------------------------------------------------------------------


def test_removes_unneeded_nodes(scaled: ScaledCluster) -> None:
    make_pool(scaled, count=2)
    first, second = scaled.nodes()
    scaled.add(pod("driver-1", first, "DaemonSet"), pod("driver-2", second, "DaemonSet"), pod("two", second, gpu=8))
    scaled.look()
    scaled.look(TEN_MINUTES - 1)
    assert len(scaled.nodes()) == 2
    scaled.looks(1, 1)
    assert scaled.nodes() == [second], "not the last one, but the empty one"
    assert scaled.events("ScaleDownEmpty") == [f'Scale-down: removing empty node "{first}"']
    scaled.kube.delete("v1", "Pod", "two", "ai")
    scaled.looks(1, *QUIET)
    assert scaled.nodes() == []


def test_an_update_of_the_pool_keeps_the_remaining_nodes(scaled: ScaledCluster) -> None:
    make_pool(scaled, count=2)
    _, second = scaled.nodes()
    scaled.add(pod("two", second, gpu=8))
    scaled.looks(0, *QUIET)
    bounds = {"count": 1, "enableAutoScaling": True, "minCount": 0, "maxCount": 2}
    scaled.arm.put(pool_path(), pool_body(**bounds, nodeLabels={"team": "a"}))
    scaled.arm.done()
    assert scaled.nodes() == [second]


def test_drains_a_little_used_node_if_its_pods_fit_elsewhere(scaled: ScaledCluster) -> None:
    make_pool(scaled, count=2)
    first, second = scaled.nodes()
    scaled.add(pod("one", first, gpu=1), pod("two", second, gpu=5))
    scaled.looks(0, TEN_MINUTES)
    assert "utilization: 0.125, pods to reschedule: ai/one" in scaled.events("ScaleDown")[-1]
    taints = [node["spec"]["taints"] for node in scaled.kube.list("v1", "Node") if node["metadata"]["name"] == first]
    assert "ToBeDeletedByClusterAutoscaler" in [taint["key"] for taint in taints[0]]
    scaled.looks(1, 1)
    assert scaled.nodes() == [second]
    assert [each["metadata"]["name"] for each in scaled.kube.list("v1", "Pod")] == ["two"], "the other pod was evicted"


@pytest.mark.parametrize(
    ("change", "settings"),
    [
        ({"ownerReferences": []}, {}),
        ({"annotations": UNSAFE}, {}),
        ({"namespace": "kube-system"}, {}),
        ({}, {"skip_nodes_with_local_storage": "true"}),
        ({}, {"scale_down_unneeded_time": "60m"}),
    ],
    ids=["no controller", "not safe to evict", "system pod", "local storage", "unneeded time"],
)
def test_keeps_a_node(scaled: ScaledCluster, change: Object, settings: dict[str, str]) -> None:
    make_pool(scaled, count=2)
    scaled.profile(**settings)
    first, second = scaled.nodes()
    kept = pod("one", first, gpu=1)
    kept["metadata"] |= change
    kept["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    scaled.add(kept, pod("two", second, gpu=5))
    scaled.looks(0, *QUIET)
    assert len(scaled.nodes()) == 2


@pytest.mark.parametrize(("version", "left"), [("1.34.1", 2), ("1.35.4", 1)])
def test_removes_a_node_at_the_threshold_since_1_35(scaled: ScaledCluster, version: str, left: int) -> None:
    """AKS's setting is for CPU and memory. A node with GPUs has upstream's threshold of a half."""
    make_pool(scaled, count=2)
    scaled.profile(scale_down_utilization_threshold="0.1")
    scaled.set_version(version)
    first, second = scaled.nodes()
    scaled.add(pod("one", first, gpu=4), pod("two", second, gpu=4))
    scaled.looks(0, *QUIET)
    assert len(scaled.nodes()) == left


def test_arm_accepts_updates_during_a_scale_up(scaled: ScaledCluster) -> None:
    """The autoscaler changes the scale set, so ARM's pool is not busy."""
    make_pool(scaled)
    scaled.add(pod("one", gpu=8))
    scaled.arm.done()
    record = scaled.arm.server.world.store.get(parse_id(CLUSTER))
    assert record
    scaled.scaler.look(record, [], scaled.kube.list("v1", "Pod"))
    bounds = {"enableAutoScaling": True, "minCount": 0, "maxCount": 2, "count": 0}
    answer = scaled.arm.put(pool_path(), pool_body(**bounds, nodeLabels={"team": "a"}))
    assert answer.status_code == 200, answer.text
    scaled.arm.done()
    assert len(scaled.nodes()) == 1


def test_a_success_does_not_reset_the_backoff(scaled: ScaledCluster) -> None:
    """No release from 1.34 to 1.36 calls RemoveBackoff."""
    make_pool(scaled, maxCount=3)
    fault = new_fault("capacity", size=H100)
    scaled.arm.server.world.faults.fault(fault)
    scaled.add(pod("one", gpu=8))
    scaled.looks(0, 2)
    scaled.arm.server.world.faults.heal("capacity")
    scaled.looks(16, 2)
    assert len(scaled.nodes()) == 1
    scaled.arm.server.world.faults.fault(fault)
    scaled.add(pod("two", gpu=8), pod("one-runs", scaled.nodes()[0], gpu=8))
    scaled.looks(2, 2, 16)
    assert autoscaler_status(scaled)["nodeGroups"][0]["scaleUp"]["status"] == "Backoff"


def test_a_disruption_budget_aborts_a_drain(scaled: ScaledCluster) -> None:
    make_pool(scaled, count=2)
    scaled.profile(max_graceful_termination_sec="5")
    first, second = scaled.nodes()
    scaled.add(pod("one", first, labels={"app": "x"}, gpu=1), pod("two", second, gpu=5))
    scaled.looks(0, TEN_MINUTES)
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "x", "namespace": "ai"}}
    scaled.add(budget | {"spec": {"selector": {"matchLabels": {"app": "x"}}}, "status": {"disruptionsAllowed": 0}})
    scaled.looks(1, 20)
    assert scaled.events("ScaleDownFailed") == ["failed to drain the node, aborting ScaleDown"]
    assert "ToBeDeleted" not in str(scaled.kube.list("v1", "Node"))
    assert len(scaled.nodes()) == 2


def test_a_new_autoscaler_removes_old_taints(scaled: ScaledCluster) -> None:
    make_pool(scaled, count=2)
    first, second = scaled.nodes()
    scaled.add(pod("one", first, gpu=1), pod("two", second, gpu=5))
    scaled.looks(0, TEN_MINUTES)
    assert "ToBeDeleted" in str(scaled.kube.list("v1", "Node"))
    scaled.scaler = scaled.another()
    scaled.look()
    assert "ToBeDeleted" not in str(scaled.kube.list("v1", "Node"))


def test_does_nothing_in_an_unhealthy_cluster(scaled: ScaledCluster) -> None:
    make_pool(scaled, count=2)
    scaled.sync()
    scaled.profile(ok_total_unready_count="0")
    for name in scaled.nodes():
        body = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
        scaled.kube.patch("v1", "Node", name, None, body)
    scaled.looks(0, START_UP, *QUIET)
    assert len(scaled.nodes()) == 2
    assert autoscaler_status(scaled)["clusterWide"]["health"] == {"status": "Unhealthy"}


def owned_pod(owner: str, cpu: str) -> Object:
    metadata = {"name": owner.lower(), "namespace": "ai", "ownerReferences": [{"kind": owner}]}
    spec = {"nodeName": "n", "containers": [{"resources": {"requests": {"cpu": cpu}}}]}
    return {"metadata": metadata, "spec": spec, "status": {}}


@pytest.mark.parametrize(("skip", "used"), [(False, Fraction(6, 10)), (True, Fraction(4, 8))])
def test_skipped_daemon_sets_reduce_the_capacity(skip: bool, used: Fraction) -> None:
    """cluster-autoscaler/simulator/utilization/info.go, CalculateUtilizationOfResource."""
    node = {"metadata": {"name": "n"}, "spec": {}, "status": {"allocatable": {"cpu": "10", "memory": "1Gi"}}}
    assert utilization(node, [owned_pod("DaemonSet", "2"), owned_pod("Job", "4")], skip_daemon_sets=skip) == used


# -- the profile -------------------------------------------------------------------------------------------------------


def test_durations_of_the_profile_are_shortened() -> None:
    assert Profile().duration_s("scale-down-unneeded-time") == 30
    assert Profile({"scale-down-unneeded-time": "2m"}).duration_s("scale-down-unneeded-time") == 6
    assert Profile({"scan-interval": "60"}).interval_s == 3
    assert Profile().interval_s == 2, "the shortest interval"
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
    ids=["maximum count", "no capacity"],
)
def test_the_diagnosis_reads_the_status_and_events(scaled: ScaledCluster, capacity: bool, why: str) -> None:
    make_pool(scaled)
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
