"""Coscheduling in Volcano's place: gangs begin whole or not at all, and packing leaves nodes whole for them.

One `up`; the tests follow each other. The real scheduler is two minor versions older than the API server: it relies on
pods, nodes, bindings, events and PodGroups alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from k8s.objects import Object
from tests.e2e.policies import offers_gpus
from tests.e2e.runs import ended, gpu_pod_nodes, observed
from tests.support.world import Stack, eventually, gpu_nodes

pytestmark = [pytest.mark.simulator, pytest.mark.long]
COSCHEDULER = "scheduler-plugins-scheduler"
GROUP, GROUP_LABEL = "scheduling.x-k8s.io/v1alpha1", "scheduling.x-k8s.io/pod-group"
STORAGE: dict[str, Any] = {
    "protect": False,
    "containers": {
        "olmo-data": {"permissions": "rl", "profile": "random-4k", "upload": True},
        "olmo-checkpoints": {"permissions": "racwdlmp", "profile": "checkpoints"},
    },
}


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    made = new_stack(
        "coscheduled",
        nodeCount="2",
        workloads="olmo,health-check",
        workloadOptions={"olmo": {"numNodes": 2, "stopAt": 20, "maxFiles": 2}},
        storage=STORAGE,
        operators={"scheduler": COSCHEDULER},
    )
    made.up()
    eventually(partial(offers_gpus, made), "both nodes offer their GPUs", 240)
    return made


def gang(stack: Stack, name: str, pods: int, gpus: int) -> None:
    """So many pods with so many GPUs each, as a user's own manifests would make them."""
    stack.kube.create(
        {
            "apiVersion": GROUP,
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "ai"},
            "spec": {"minMember": pods},
        }
    )
    for number in range(pods):
        stack.kube.create(pod(f"{name}-{number}", gpus, {GROUP_LABEL: name}))


def pod(name: str, gpus: int, labels: dict[str, str] | None = None) -> Object:
    container = {
        "name": "main",
        "image": "registry.example.com/main:1",
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ai", "labels": labels or {}},
        "spec": {
            "schedulerName": COSCHEDULER,
            "tolerations": [{"operator": "Exists"}],
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
        },
    }


def placed(stack: Stack, prefix: str) -> dict[str, str]:
    """Nodes of the pods that have one."""
    pods = stack.kube.list("v1", "Pod", "ai")
    nodes = {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in pods}
    return {name: node for name, node in nodes.items() if node and name.startswith(f"{prefix}-")}


def removed(stack: Stack, *prefixes: str) -> None:
    for each in stack.kube.list("v1", "Pod", "ai"):
        if each["metadata"]["name"].startswith(prefixes):
            stack.kube.delete("v1", "Pod", each["metadata"]["name"], "ai")
    eventually(lambda: not any(placed(stack, prefix.rstrip("-")) for prefix in prefixes), "they are gone")


def said(stack: Stack, name: str) -> str:
    """Of a pod's placement."""
    conditions = stack.kube.get("v1", "Pod", name, "ai").get("status", {}).get("conditions", [])
    return " ".join(each.get("message", "") for each in conditions if each["type"] == "PodScheduled")


def test_workloads_run_to_their_end_on_both_nodes(stack: Stack) -> None:
    found = ended(stack, stack)
    assert {name: each.phase for name, each in found.items()} == {"olmo": "Complete", "health-check": "Complete"}
    assert gpu_pod_nodes(stack, "olmo") == sorted(node["metadata"]["name"] for node in gpu_nodes(stack.kube))
    assert all(verdict.startswith("VERDICT: PASS") for verdict in found["health-check"].report.verdicts)
    assert stack.kube.get(GROUP, "PodGroup", "olmo", "ai")["spec"] == {"minMember": 2}
    jobs = stack.kube.list("v1", "Pod", "ai", labels=GROUP_LABEL)
    assert {each["spec"]["schedulerName"] for each in jobs} == {COSCHEDULER}
    volcano = stack.kube.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    assert not [each for each in volcano if each["spec"]["group"].endswith("volcano.sh")]


def test_single_pods_are_packed_so_that_a_whole_node_is_left(stack: Stack) -> None:
    for number in range(4):
        stack.kube.create(pod(f"single-{number}", 2))
    found = eventually(lambda: len(placed(stack, "single")) == 4 and placed(stack, "single"), "all are placed")
    assert len(set(found.values())) == 1
    removed(stack, "single-")


def test_a_gang_that_is_too_big_for_the_free_nodes_does_not_start_half(stack: Stack) -> None:
    gang(stack, "holder", 1, 8)
    eventually(lambda: len(placed(stack, "holder")) == 1, "it has a node")
    gang(stack, "large", 2, 8)
    eventually(lambda: "Insufficient nvidia.com/gpu" in said(stack, "large-0") + said(stack, "large-1"), "it is told")
    gang(stack, "small", 1, 8)
    eventually(lambda: len(placed(stack, "small")) == 1, "another may have what the large one leaves alone", 120)
    assert placed(stack, "large") == {}
    removed(stack, "holder-", "small-")
    eventually(lambda: len(placed(stack, "large")) == 2, "with both nodes free it begins whole", 120)
    removed(stack, "large-")


def test_a_job_that_waits_is_told_why(stack: Stack) -> None:
    gang(stack, "holder2", 1, 8)
    eventually(lambda: len(placed(stack, "holder2")) == 1, "it has a node")
    stack.set(workloadOptions={"olmo": {"numNodes": 2, "stopAt": 21, "maxFiles": 2}})
    stack.up()

    def told() -> list[str]:
        found = [finding.why for finding in observed(stack, stack)["olmo"].report.findings]
        return [why for why in found if "is taken by ai/holder2-0 on node" in why]

    eventually(told, "diagnosis says who has the node", 120)
    assert placed(stack, "olmo-0") == placed(stack, "olmo-1") == {}
    removed(stack, "holder2-")
    assert ended(stack, stack)["olmo"].phase == "Complete"
