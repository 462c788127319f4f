"""A team's PyTorchJob where Volcano schedules: none of its pods is there before there is room for both.

One story, told in the order of the file; its stack has two nodes of eight GPUs, both of one team.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.data.scheduling import ANY_TAINT, GPU_RESOURCE, VOLCANO
from k8s.objects import Object, condition
from tests.support.world import Stack, eventually, gpu_nodes, names

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
JOB, GROUP = ("kubeflow.org/v1", "PyTorchJob"), ("scheduling.volcano.sh/v1beta1", "PodGroup")
TEAM, USER, GANG, OUTSIDER = "blue", "alice", "gang", "beside-the-queues"


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    operators = {name: {"enabled": True} for name in ("kueue", "trainingOperator")}
    teams = {TEAM: {"gpus": 16, "users": [USER]}}
    made = new_stack("volcano-gangs", workloads="", nodeCount=2, operators=operators, teams=teams)
    made.up()
    eventually(lambda: offered(made) == ["8", "8"], "GPUs", 300)
    return made


def offered(stack: Stack) -> list[str]:
    """GPUs of each node."""
    return [node["status"]["allocatable"].get(GPU_RESOURCE, "0") for node in gpu_nodes(stack.kube)]


def pod_of_a_node(**more: Any) -> Object:
    """It takes all GPUs of one."""
    container = {"name": "pytorch", "image": "example.com/train:1", "resources": {"limits": {GPU_RESOURCE: 8}}}
    return {"schedulerName": VOLCANO, "containers": [container], **more}


def gang(stack: Stack) -> list[Object]:
    return stack.kube.list("v1", "Pod", TEAM, labels=f"training.kubeflow.org/job-name={GANG}")


def group(stack: Stack) -> Object:
    """Empty before there is one."""
    return stack.kube.find(*GROUP, GANG, TEAM) or {}


def placed(pods: list[Object]) -> set[str]:
    return {pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}


def test_with_one_node_taken_an_admitted_job_has_no_pod(stack: Stack) -> None:
    metadata = {"name": OUTSIDER, "namespace": "default"}
    stack.kube.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_of_a_node(tolerations=ANY_TAINT)}
    )
    eventually(lambda: placed(stack.kube.list("v1", "Pod", "default")) != set(), "a node is taken")
    replica = {"replicas": 1, "restartPolicy": "Never", "template": {"spec": pod_of_a_node()}}
    job = {
        "apiVersion": JOB[0],
        "kind": JOB[1],
        "metadata": {"name": GANG, "labels": {"kueue.x-k8s.io/queue-name": "default-queue"}},
        "spec": {"pytorchReplicaSpecs": {"Master": replica, "Worker": replica}},
    }
    file = Path(stack.folder, "gang.yaml")
    file.write_text(yaml.safe_dump(job))
    config = f"KUBECONFIG={stack.world.kubeconfig(stack.name)}"
    stack.world.run(["env", config, "kubectl", "apply", "--as", USER, "-n", TEAM, "-f", str(file)])
    eventually(lambda: group(stack).get("status", {}).get("conditions"), "Volcano has looked at it", 120)
    assert condition(group(stack), "Unschedulable")["status"] == "True"
    assert group(stack)["spec"]["minMember"] == 2
    assert group(stack)["status"]["phase"] == "Pending"
    assert gang(stack) == [], "the operator makes pods only once Volcano has begun to place the gang"


def test_when_the_node_is_free_both_begin_on_a_node_each(stack: Stack) -> None:
    stack.kube.delete("v1", "Pod", OUTSIDER, "default")
    eventually(lambda: placed(gang(stack)) == set(names(gpu_nodes(stack.kube))), "both are placed", 120)
    assert {pod["spec"]["schedulerName"] for pod in gang(stack)} == {VOLCANO}
