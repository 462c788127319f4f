"""PyTorchJobs of a team: Kueue holds each back until all of its pods have room, then they begin as one gang.

One story, told in the order of the file; its stack has two nodes of eight GPUs, both of one team.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from config.data.scheduling import COSCHEDULER, GPU_RESOURCE
from k8s.objects import Object, condition
from operators.kueue import queues
from operators.training_operator import NAME
from tests.e2e.team_jobs import QUEUED, apply, container, kubectl, shared_stack, workload
from tests.support.world import CommandFailed, Stack, eventually, gpu_nodes, names

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
API, TEAM, USER, NAMESPACE = "kubeflow.org/v1", "blue", "alice", "mlbatch-system"
GROUP, GROUP_LABEL = "scheduling.x-k8s.io/v1alpha1", "scheduling.x-k8s.io/pod-group"
TELLS = "echo rank $RANK of $WORLD_SIZE, the first at $MASTER_ADDR:$MASTER_PORT"
OPERATORS: dict[str, Any] = {
    "scheduler": COSCHEDULER,
    "kueue": {"enabled": True},
    "trainingOperator": {"enabled": True},
}


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    teams = {TEAM: {"gpus": 16, "users": [USER]}}
    return shared_stack(new_stack, "pytorch", nodes=2, operators=OPERATORS, teams=teams)


def submit(stack: Stack, name: str, script: str, *, labels: Any = QUEUED, masters: int = 1, workers: int = 1) -> None:
    """A PyTorchJob with a whole node for each pod, from a file of the user's."""
    main = container(stack, "bash", "-c", f"{TELLS}; {script}", name="pytorch")
    pods = {"template": {"spec": {"terminationGracePeriodSeconds": 0, "containers": [main]}}}
    replicas = {
        kind: {"replicas": count, "restartPolicy": "Never", **pods}
        for kind, count in {"Master": masters, "Worker": workers}.items()
    }
    job = {
        "apiVersion": API,
        "kind": "PyTorchJob",
        "metadata": {"name": name, "labels": labels},
        "spec": {"pytorchReplicaSpecs": replicas},
    }
    apply(stack, job, TEAM, USER)


def job(stack: Stack, name: str) -> Object:
    return stack.kube.get(API, "PyTorchJob", name, TEAM)


def pods(stack: Stack, name: str) -> list[Object]:
    return stack.kube.list("v1", "Pod", TEAM, labels=f"training.kubeflow.org/job-name={name}")


def is_so(stack: Stack, name: str, state: str) -> bool:
    return condition(job(stack, name), state).get("status") == "True"


def becomes(stack: Stack, name: str, state: str) -> None:
    eventually(lambda: is_so(stack, name, state), f"{name} is {state}", 150)


def is_held(stack: Stack, name: str) -> bool:
    """Suspended, with no pod."""
    return bool(job(stack, name)["spec"]["runPolicy"].get("suspend")) and not pods(stack, name)


def reserved(stack: Stack, name: str) -> Object:
    """What Kueue says of a job's quota; empty before it has seen the job."""
    return condition(workload(stack, TEAM, name), "QuotaReserved")


def test_the_operator_is_up_for_pytorchjobs_alone_and_nothing_is_left_to_do(stack: Stack) -> None:
    stack.up("--expect-no-changes")
    (manager,) = stack.kube.list("v1", "Pod", NAMESPACE, labels="control-plane=kubeflow-training-operator")
    assert condition(manager, "Ready")["status"] == "True"
    assert "reason" not in manager["status"], "it is not faked"
    crds = names(stack.kube.list("apiextensions.k8s.io/v1", "CustomResourceDefinition"))
    assert [name for name in crds if name.endswith(".kubeflow.org")] == ["pytorchjobs.kubeflow.org"]


def test_a_job_of_two_nodes_is_admitted_and_its_pods_are_one_gang_with_a_rank_each(stack: Stack) -> None:
    submit(stack, "first", "while ! test -e /tmp/end; do sleep 1; done")
    becomes(stack, "first", "Running")
    master, worker = sorted(pods(stack, "first"), key=lambda pod: pod["metadata"]["name"])
    assert {master["spec"]["nodeName"], worker["spec"]["nodeName"]} == set(names(gpu_nodes(stack.kube)))
    assert stack.kube.get(GROUP, "PodGroup", "first", TEAM)["spec"]["minMember"] == 2
    for pod in (master, worker):
        assert pod["spec"]["schedulerName"] == COSCHEDULER
        assert pod["metadata"]["labels"][GROUP_LABEL] == "first"
    said = "rank 1 of 2, the first at first-master-0:23456\n"
    asked = ("logs", "--as", USER, "-n", TEAM, "first-worker-0", "-c", "pytorch")
    eventually(lambda: kubectl(stack, *asked) == said, "the worker's pod runs, and then says its rank", 60)


def test_the_next_is_held_with_no_pod_until_the_first_has_ended_and_then_succeeds(stack: Stack) -> None:
    submit(stack, "second", "true")
    eventually(lambda: reserved(stack, "second").get("status") == "False", "Kueue has seen it")
    assert is_held(stack, "second")
    ends_soon = "(sleep 1; touch /tmp/end) >/dev/null 2>&1 &"  # the command has been answered before its container ends
    for pod in names(pods(stack, "first")):
        kubectl(stack, "exec", "--as", USER, "-n", TEAM, pod, "-c", "pytorch", "--", "bash", "-c", ends_soon)
    for name in ("first", "second"):
        becomes(stack, name, "Succeeded")


def test_one_that_no_quota_could_hold_waits_and_kueue_says_why(stack: Stack) -> None:
    submit(stack, "large", "true", workers=2)
    eventually(lambda: GPU_RESOURCE in reserved(stack, "large").get("message", ""), "it is told")
    assert reserved(stack, "large")["status"] == "False"
    assert is_held(stack, "large")


def test_a_job_without_a_queue_is_refused(stack: Stack) -> None:
    with pytest.raises(CommandFailed, match="it has no queue"):
        submit(stack, "astray", "true", labels={})


def test_what_is_wrong_with_a_job_the_operators_webhook_says(stack: Stack) -> None:
    with pytest.raises(CommandFailed, match=r"denied the request.*Master.*must be 1"):
        submit(stack, "twins", "true", masters=2)


def test_with_the_operator_go_its_jobs_and_their_pods(stack: Stack) -> None:
    stack.set(operators={**OPERATORS, "trainingOperator": {"enabled": False}})
    stack.up()
    assert stack.kube.list("v1", "Pod", NAMESPACE, labels=f"control-plane=kubeflow-{NAME}") == []
    eventually(lambda: stack.kube.list("v1", "Pod", TEAM) == [], "no job is left")
    eventually(lambda: stack.kube.list(queues.API, "Workload", TEAM) == [], "Kueue has let go of them")
