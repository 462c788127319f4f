"""Volcano creates a PyTorchJob's pods only when all have nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from config.data.scheduling import ANY_TAINT, GPU_RESOURCE, VOLCANO
from k8s.objects import Object, holds
from tests.e2e.team_jobs import QUEUED, apply, shared_stack
from tests.support.manifests import manifest
from tests.support.world import Stack, eventually, gpu_nodes, names

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
JOB, GROUP = ("kubeflow.org/v1", "PyTorchJob"), ("scheduling.volcano.sh/v1beta1", "PodGroup")
TEAM, USER, GANG, OUTSIDER = "blue", "alice", "gang", "beside-the-queues"


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    operators = {name: {"enabled": True} for name in ("kueue", "trainingOperator")}
    teams = {TEAM: {"gpus": 16, "users": [USER]}}
    return shared_stack(new_stack, "volcano-gangs", nodes=2, operators=operators, teams=teams)


def pod_of_a_node(**more: Any) -> Object:
    container = {"name": "pytorch", "image": "example.com/train:1", "resources": {"limits": {GPU_RESOURCE: 8}}}
    return {"schedulerName": VOLCANO, "containers": [container], **more}


def gang(stack: Stack) -> list[Object]:
    return stack.kube.list("v1", "Pod", TEAM, labels=f"training.kubeflow.org/job-name={GANG}")


def group(stack: Stack) -> Object:
    return stack.kube.find(*GROUP, GANG, TEAM) or {}


def placed(pods: list[Object]) -> set[str]:
    return {pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}


def test_with_one_node_taken_an_admitted_job_has_no_pod(stack: Stack) -> None:
    stack.kube.create(manifest("v1", "Pod", OUTSIDER, "default", spec=pod_of_a_node(tolerations=ANY_TAINT)))
    eventually(lambda: placed(stack.kube.list("v1", "Pod", "default")) != set(), "a node is taken")
    replica = {"replicas": 1, "restartPolicy": "Never", "template": {"spec": pod_of_a_node()}}
    spec = {"pytorchReplicaSpecs": {"Master": replica, "Worker": replica}}
    apply(stack, manifest(*JOB, GANG, labels=QUEUED, spec=spec), TEAM, USER)
    eventually(lambda: group(stack).get("status", {}).get("conditions"), "Volcano has checked it", 120)
    assert holds(group(stack), "Unschedulable")
    assert group(stack)["spec"]["minMember"] == 2
    assert group(stack)["status"]["phase"] == "Pending"
    assert gang(stack) == [], "the operator creates pods only once Volcano starts to place the gang"


def test_when_the_node_is_free_each_pod_gets_a_node(stack: Stack) -> None:
    stack.kube.delete("v1", "Pod", OUTSIDER, "default")
    eventually(lambda: placed(gang(stack)) == set(names(gpu_nodes(stack.kube))), "both are placed", 120)
    assert {pod["spec"]["schedulerName"] for pod in gang(stack)} == {VOLCANO}
