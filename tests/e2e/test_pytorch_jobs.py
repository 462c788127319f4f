from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from config.data.scheduling import COSCHEDULER
from k8s.objects import Object, holds, is_ready
from operators.kueue import queues
from operators.training_operator import NAME
from tests.e2e.team_jobs import QUEUED, apply, container, kubectl, quota_reserved, shared_stack
from tests.support.manifests import manifest
from tests.support.world import CommandFailed, Stack, eventually, gpu_nodes, names

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
API, TEAM, USER, NAMESPACE = "kubeflow.org/v1", "blue", "alice", "mlbatch-system"
GROUP, GROUP_LABEL = "scheduling.x-k8s.io/v1alpha1", "scheduling.x-k8s.io/pod-group"
PRINT_RANK = "echo rank $RANK of $WORLD_SIZE, the first at $MASTER_ADDR:$MASTER_PORT"
OPERATORS: dict[str, Any] = {
    "scheduler": COSCHEDULER,
    "kueue": {"enabled": True},
    "trainingOperator": {"enabled": True},
}


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    teams = {TEAM: {"gpus": 16, "users": [USER]}}
    return shared_stack(new_stack, "pytorch", nodes=2, operators=OPERATORS, teams=teams)


def submit(stack: Stack, name: str, script: str, *, masters: int = 1) -> None:
    main = container(stack, "bash", "-c", f"{PRINT_RANK}; {script}", name="pytorch")
    pods = {"template": {"spec": {"terminationGracePeriodSeconds": 0, "containers": [main]}}}
    replicas = {
        kind: {"replicas": count, "restartPolicy": "Never", **pods}
        for kind, count in {"Master": masters, "Worker": 1}.items()
    }
    spec = {"pytorchReplicaSpecs": replicas}
    apply(stack, manifest(API, "PyTorchJob", name, labels=QUEUED, spec=spec), TEAM, USER)


def job(stack: Stack, name: str) -> Object:
    return stack.kube.get(API, "PyTorchJob", name, TEAM)


def pods(stack: Stack, name: str) -> list[Object]:
    return stack.kube.list("v1", "Pod", TEAM, labels=f"training.kubeflow.org/job-name={name}")


def wait_for(stack: Stack, name: str, state: str) -> None:
    eventually(lambda: holds(job(stack, name), state), f"{name} is {state}", 150)


def is_held(stack: Stack, name: str) -> bool:
    return bool(job(stack, name)["spec"]["runPolicy"].get("suspend")) and not pods(stack, name)


def test_the_operator_runs_only_for_pytorchjobs_and_a_second_up_changes_nothing(stack: Stack) -> None:
    stack.up("--expect-no-changes")
    (manager,) = stack.kube.list("v1", "Pod", NAMESPACE, labels="control-plane=kubeflow-training-operator")
    assert is_ready(manager)
    assert "reason" not in manager["status"], "its process really runs"
    crds = names(stack.kube.list("apiextensions.k8s.io/v1", "CustomResourceDefinition"))
    assert [name for name in crds if name.endswith(".kubeflow.org")] == ["pytorchjobs.kubeflow.org"]


def test_pods_of_an_admitted_job_are_one_gang_with_ranks(stack: Stack) -> None:
    submit(stack, "first", "while ! test -e /tmp/end; do sleep 1; done")
    wait_for(stack, "first", "Running")
    master, worker = sorted(pods(stack, "first"), key=lambda pod: pod["metadata"]["name"])
    assert {master["spec"]["nodeName"], worker["spec"]["nodeName"]} == set(names(gpu_nodes(stack.kube)))
    assert stack.kube.get(GROUP, "PodGroup", "first", TEAM)["spec"]["minMember"] == 2
    for pod in (master, worker):
        assert pod["spec"]["schedulerName"] == COSCHEDULER
        assert pod["metadata"]["labels"][GROUP_LABEL] == "first"
    logs = ("logs", "--as", USER, "-n", TEAM, "first-worker-0", "-c", "pytorch")
    printed = "rank 1 of 2, the first at first-master-0:23456\n"
    eventually(lambda: kubectl(stack, *logs) == printed, "the worker prints its rank", 60)


def test_the_next_job_waits_without_pods_until_the_first_has_ended(stack: Stack) -> None:
    submit(stack, "second", "true")
    eventually(lambda: quota_reserved(stack, TEAM, "second").get("status") == "False", "Kueue has seen it")
    assert is_held(stack, "second")
    ends_soon = "(sleep 1; touch /tmp/end) >/dev/null 2>&1 &"  # kubectl gets the exit code before the container ends
    for pod in names(pods(stack, "first")):
        kubectl(stack, "exec", "--as", USER, "-n", TEAM, pod, "-c", "pytorch", "--", "bash", "-c", ends_soon)
    for name in ("first", "second"):
        wait_for(stack, name, "Succeeded")


def test_the_operators_webhook_rejects_two_masters(stack: Stack) -> None:
    with pytest.raises(CommandFailed, match=r"denied the request.*Master.*must be 1"):
        submit(stack, "twins", "true", masters=2)


def test_disabling_the_operator_deletes_its_jobs(stack: Stack) -> None:
    stack.set(operators={**OPERATORS, "trainingOperator": {"enabled": False}})
    stack.up()
    assert stack.kube.list("v1", "Pod", NAMESPACE, labels=f"control-plane=kubeflow-{NAME}") == []
    eventually(lambda: stack.kube.list("v1", "Pod", TEAM) == [], "no job is left")
    eventually(lambda: stack.kube.list(queues.API, "Workload", TEAM) == [], "Kueue's Workloads are deleted")
