"""Coscheduling's scheduler is two minor versions older than the API server, but uses only pods, nodes, bindings, events
and PodGroups.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from k8s.objects import Object, condition
from tests.e2e.policies import offers_gpus
from tests.e2e.runs import check_verdicts, gpu_pod_nodes, observed, wait_for_end
from tests.support.manifests import manifest
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
    stack.kube.create(manifest(GROUP, "PodGroup", name, "ai", spec={"minMember": pods}))
    for number in range(pods):
        stack.kube.create(pod(f"{name}-{number}", gpus, {GROUP_LABEL: name}))


def pod(name: str, gpus: int, labels: dict[str, str] | None = None) -> Object:
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}}
    spec = {
        "schedulerName": COSCHEDULER,
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "registry.example.com/main:1", "resources": resources}],
    }
    return manifest("v1", "Pod", name, "ai", labels=labels, spec=spec)


def placed(stack: Stack, prefix: str) -> dict[str, str]:
    pods = stack.kube.list("v1", "Pod", "ai")
    nodes = {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in pods}
    return {name: node for name, node in nodes.items() if node and name.startswith(f"{prefix}-")}


def remove(stack: Stack, *prefixes: str) -> None:
    for each in stack.kube.list("v1", "Pod", "ai"):
        if each["metadata"]["name"].startswith(prefixes):
            stack.kube.delete("v1", "Pod", each["metadata"]["name"], "ai")
    eventually(lambda: not any(placed(stack, prefix.rstrip("-")) for prefix in prefixes), "they are gone")


def scheduled(stack: Stack, name: str) -> str:
    return str(condition(stack.kube.get("v1", "Pod", name, "ai"), "PodScheduled").get("message", ""))


def test_workloads_complete_on_both_nodes(stack: Stack) -> None:
    found = wait_for_end(stack, stack)
    assert {name: each.phase for name, each in found.items()} == {"olmo": "Complete", "health-check": "Complete"}
    assert gpu_pod_nodes(stack, "olmo") == sorted(node["metadata"]["name"] for node in gpu_nodes(stack.kube))
    check_verdicts(found["health-check"])
    assert stack.kube.get(GROUP, "PodGroup", "olmo", "ai")["spec"] == {"minMember": 2}
    jobs = stack.kube.list("v1", "Pod", "ai", labels=GROUP_LABEL)
    assert {each["spec"]["schedulerName"] for each in jobs} == {COSCHEDULER}
    volcano = stack.kube.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    assert not [each for each in volcano if each["spec"]["group"].endswith("volcano.sh")]


def test_single_pods_are_packed_on_one_node(stack: Stack) -> None:
    for number in range(4):
        stack.kube.create(pod(f"single-{number}", 2))
    found = eventually(lambda: len(placed(stack, "single")) == 4 and placed(stack, "single"), "all are placed")
    assert len(set(found.values())) == 1
    remove(stack, "single-")


def test_a_gang_waits_until_all_of_its_pods_fit(stack: Stack) -> None:
    gang(stack, "holder", 1, 8)
    eventually(lambda: len(placed(stack, "holder")) == 1, "it has a node")
    gang(stack, "large", 2, 8)
    insufficient = "Insufficient nvidia.com/gpu"
    eventually(lambda: insufficient in scheduled(stack, "large-0") + scheduled(stack, "large-1"), "it waits for GPUs")
    gang(stack, "small", 1, 8)
    eventually(lambda: len(placed(stack, "small")) == 1, "a smaller gang gets the free node", 120)
    assert placed(stack, "large") == {}
    remove(stack, "holder-", "small-")
    eventually(lambda: len(placed(stack, "large")) == 2, "all pods of the gang get nodes", 120)
    remove(stack, "large-")


def test_diagnosis_reports_which_pod_has_the_node(stack: Stack) -> None:
    gang(stack, "holder2", 1, 8)
    eventually(lambda: len(placed(stack, "holder2")) == 1, "it has a node")
    stack.set(workloadOptions={"olmo": {"numNodes": 2, "stopAt": 21, "maxFiles": 2}})
    stack.up()

    def causes() -> list[str]:
        found = [finding.why for finding in observed(stack, stack)["olmo"].report.findings]
        return [why for why in found if "is taken by ai/holder2-0 on node" in why]

    eventually(causes, "diagnosis names the pod", 120)
    assert placed(stack, "olmo-0") == placed(stack, "olmo-1") == {}
    remove(stack, "holder2-")
    assert wait_for_end(stack, stack)["olmo"].phase == "Complete"
