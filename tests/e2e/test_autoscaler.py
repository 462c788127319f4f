from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from config.data.scheduling import GPU_TAINT, SPOT_LABEL
from k8s.objects import Object, condition
from tests.support.manifests import manifest
from tests.support.world import Stack, eventually, gpu_nodes, names, wait_for_end

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
POOL: dict[str, Any] = {"vmSku": "Standard_ND96isr_H100_v5", "autoscale": {"min": 0, "max": 2}}
CLUSTER = "azure-native:containerservice:ManagedCluster cluster"
POOLS = "azure-native:containerservice:AgentPool pool-gpu"
A100 = "Standard_ND96asr_v4"
SPOT: dict[str, Any] = {"vmSku": A100, "spot": True, "autoscale": {"min": 0, "max": 1}}


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    options = {"nccl-allreduce": {"numNodes": 2}}
    pools = {"gpu": POOL, "cheap": SPOT}
    return new_stack("scaled", vmSku=None, nodeCount=None, pools=pools, workloadOptions=options)


def test_a_job_on_an_empty_pool_adds_nodes_and_runs(stack: Stack) -> None:
    stack.up()
    eventually(lambda: len(of_pool(stack, "gpu")) == 2, "the autoscaler adds both nodes")
    job = stack.kube.get("batch.volcano.sh/v1alpha1", "Job", "nccl-allreduce", "ai")
    for node in of_pool(stack, "gpu"):
        assert node["metadata"]["creationTimestamp"] >= job["metadata"]["creationTimestamp"], "added for the job"
    assert wait_for_end(stack.kube) == "Completed"


def test_an_update_of_the_pool_keeps_its_nodes(stack: Stack) -> None:
    for node in of_pool(stack, "gpu"):
        hold(stack, node["metadata"]["name"])
    before = names(of_pool(stack, "gpu"))
    assert len(before) == 2
    stack.set(pools={"gpu": {**POOL, "labels": {"team": "a"}}, "cheap": SPOT})
    stack.up()
    labelled = [node for node in of_pool(stack, "gpu") if node["metadata"]["labels"].get("team") == "a"]
    assert names(labelled) == before
    stack.up("--expect-no-changes")


def test_unneeded_nodes_are_deleted(stack: Stack) -> None:
    for name in names(stack.kube.list("v1", "Pod", "default")):
        stack.kube.delete("v1", "Pod", name, "default")
    eventually(lambda: of_pool(stack, "gpu") == [], "the pool is empty again")
    assert messages(stack, "ScaleDownEmpty")


def test_an_update_keeps_the_node_count_of_the_autoscaler(stack: Stack) -> None:
    stack.set(pools={"gpu": {**POOL, "labels": {"team": "b"}}, "cheap": SPOT})
    with ThreadPoolExecutor(1) as updates:
        update = updates.submit(stack.up)
        for number in range(2):
            stack.kube.create(pod_for_a_full_node(f"pod-{number}"))
            eventually(lambda: len(of_pool(stack, "gpu")) == number + 1, "the autoscaler adds a node")  # noqa: B023
        update.result()
    assert [node["metadata"]["labels"].get("team") for node in of_pool(stack, "gpu")] == ["b", "b"]


def test_a_changed_count_is_not_a_change_of_the_stack(stack: Stack) -> None:
    prices = []
    for count in (2, 1, 0):
        if count < 2:
            stack.kube.delete("v1", "Pod", f"pod-{count}", "default")
        eventually(lambda: len(of_pool(stack, "gpu")) == count, "the autoscaler removes a node", 240)  # noqa: B023
        stack.up("--expect-no-changes")
        prices.append(str(stack.outputs()["price"]))
    assert len(set(prices)) == len(prices), "the price follows the count"
    stack.kube.create(pod_for_a_full_node("pod-0"))
    eventually(lambda: of_pool(stack, "gpu"), "the autoscaler adds a node")
    assert set(stack.refresh()) <= {POOLS, CLUSTER}
    assert stack.steps() == {CLUSTER: "update"}, "the refresh has copied the list of pools"
    stack.up("--expect-no-changes")
    assert len(of_pool(stack, "gpu")) == 1


def test_an_update_after_a_refresh_does_not_restore_the_count_of_the_refresh(stack: Stack) -> None:
    stack.refresh()
    stack.kube.create(pod_for_a_full_node("pod-1"))
    eventually(lambda: len(of_pool(stack, "gpu")) == 2, "the autoscaler adds a node")
    stack.set(pools={"gpu": {**POOL, "labels": {"team": "c"}}, "cheap": SPOT})
    stack.up()
    assert len(of_pool(stack, "gpu")) == 2
    for number in range(2):
        stack.kube.delete("v1", "Pod", f"pod-{number}", "default")


def test_an_evicted_spot_node_is_drained_and_replaced_and_its_job_does_not_fail(stack: Stack) -> None:
    stack.kube.create(batch())
    eventually(lambda: running(stack), "a Spot node is added, and the pod runs there")
    first = running(stack)[0]
    stack.world.simulator("evict", first["spec"]["nodeName"])
    eventually(lambda: is_evicted(stack, first), "the pod is evicted")
    node = stack.kube.get("v1", "Node", first["spec"]["nodeName"])
    assert "Preempt Scheduled: " in condition(node, "VMEventScheduled")["message"]
    assert node["spec"]["unschedulable"]
    eventually(lambda: first["spec"]["nodeName"] not in names(of_pool(stack, "cheap")), "the machine is gone")
    eventually(lambda: running(stack) and uid(running(stack)[0]) != uid(first), "another pod runs on another node")
    assert running(stack)[0]["spec"]["nodeName"] != first["spec"]["nodeName"]
    assert not stack.kube.get("batch/v1", "Job", "batch", "default")["status"].get("failed")


def of_pool(stack: Stack, key: str) -> list[Object]:
    return [node for node in gpu_nodes(stack.kube) if re.match(f"aks-{key}", node["metadata"]["name"])]


def running(stack: Stack) -> list[Object]:
    pods = stack.kube.list("v1", "Pod", "default", labels="job-name=batch")
    return [pod for pod in pods if pod["status"]["phase"] == "Running" and not pod["metadata"].get("deletionTimestamp")]


def uid(pod: Object) -> str:
    return str(pod["metadata"]["uid"])


def is_evicted(stack: Stack, pod: Object) -> bool:
    now = stack.kube.find("v1", "Pod", pod["metadata"]["name"], "default")
    return now is None or condition(now, "DisruptionTarget").get("reason") == "EvictionByEvictionAPI"


def messages(stack: Stack, reason: str) -> list[str]:
    return [event["message"] for event in stack.kube.list("v1", "Event") if event["reason"] == reason]


def batch() -> Object:
    """Returns a Job whose pod does not tolerate a cordon: its next pod must not run on the evicted machine."""
    script = "trap 'exit 1' TERM; while true; do sleep 1; done"
    container = {
        "name": "main",
        "image": "docker.io/me/node-labeler:1",
        "command": ["bash", "-c", script],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    tolerated = GPU_TAINT.partition("=")[0], SPOT_LABEL
    ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    spec = {
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": [ignored]},
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "nodeSelector": {SPOT_LABEL: "spot"},
                "tolerations": [{"key": key, "operator": "Exists"} for key in tolerated],
                "containers": [container],
            }
        },
    }
    return manifest("batch/v1", "Job", "batch", "default", spec=spec)


def pod_for_a_full_node(name: str) -> Object:
    container = {"name": "main", "image": "alpine", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    spec = {
        "containers": [container],
        "nodeSelector": {"node.kubernetes.io/instance-type": POOL["vmSku"]},
        "tolerations": [{"operator": "Exists"}],
    }
    return manifest("v1", "Pod", name, "default", spec=spec)


def hold(stack: Stack, node: str) -> None:
    containers = [{"name": "main", "image": "alpine"}]
    spec = {"nodeName": node, "containers": containers, "tolerations": [{"operator": "Exists"}]}
    stack.kube.create(manifest("v1", "Pod", f"holds-{node}", "default", spec=spec))
