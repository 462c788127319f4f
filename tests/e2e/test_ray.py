"""Ray of a team: Kueue holds clusters and jobs back until all of their pods have room, and KubeRay makes these.

One story, told in the order of the file; its stack has two nodes of eight GPUs, both of one team. Ray itself is not
here: its pods are faked, and no job begins in them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from config.data.scheduling import GPU_RESOURCE, VOLCANO
from k8s.objects import Object, condition
from operators.kueue import queues
from tests.e2e.team_jobs import QUEUED, apply, kubectl, shared_stack, workload
from tests.support.world import CommandFailed, Stack, eventually, gpu_nodes, names

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
API, TEAM, USER, NAMESPACE = "ray.io/v1", "blue", "alice", "mlbatch-system"
OPERATORS: dict[str, Any] = {"kueue": {"enabled": True}, "kuberay": {"enabled": True}}


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    teams = {TEAM: {"gpus": 16, "users": [USER]}}
    return shared_stack(new_stack, "ray", nodes=2, operators=OPERATORS, teams=teams)


def cluster(workers: int) -> Object:
    """The spec of one: a head, and workers of a whole node each."""

    def pod(**limits: Any) -> Object:
        container = {
            "name": "ray",
            "image": "rayproject/ray:2.52.0",
            "resources": {"limits": {"cpu": 1, "memory": "2Gi", **limits}},
        }
        return {"spec": {"schedulerName": VOLCANO, "terminationGracePeriodSeconds": 0, "containers": [container]}}

    size = dict.fromkeys(("replicas", "minReplicas", "maxReplicas"), workers)
    group = {"groupName": "gpus", **size, "rayStartParams": {}, "template": pod(**{GPU_RESOURCE: 8})}
    return {"headGroupSpec": {"rayStartParams": {}, "template": pod()}, "workerGroupSpecs": [group]}


def submit(stack: Stack, kind: str, name: str, spec: Object, labels: Any = QUEUED) -> None:
    made = {"apiVersion": API, "kind": kind, "metadata": {"name": name, "labels": labels}, "spec": spec}
    apply(stack, made, TEAM, USER)


def pods(stack: Stack, name: str) -> list[Object]:
    """Of a RayCluster."""
    return stack.kube.list("v1", "Pod", TEAM, labels=f"ray.io/cluster={name}")


def is_ready(stack: Stack, name: str) -> bool:
    found: str = stack.kube.get(API, "RayCluster", name, TEAM).get("status", {}).get("state", "")
    return found == "ready"


def gpu_places(stack: Stack, name: str) -> list[str]:
    """Nodes of a RayCluster's workers."""
    workers = (pod for pod in pods(stack, name) if pod["metadata"]["labels"]["ray.io/node-type"] == "worker")
    return sorted(pod["spec"].get("nodeName", "") for pod in workers)


def reserved(stack: Stack, name: str) -> Object:
    """What Kueue says of the quota of a job or cluster; empty before it has seen it."""
    return condition(workload(stack, TEAM, name), "QuotaReserved")


def test_the_operator_is_up_and_nothing_is_left_to_do(stack: Stack) -> None:
    stack.up("--expect-no-changes")
    (operator,) = stack.kube.list("v1", "Pod", NAMESPACE, labels="app.kubernetes.io/name=kuberay")
    assert condition(operator, "Ready")["status"] == "True"
    assert "reason" not in operator["status"], "it is not faked"
    crds = names(stack.kube.list("apiextensions.k8s.io/v1", "CustomResourceDefinition"))
    assert "rayjobs.ray.io" in crds
    assert "raycronjobs.ray.io" not in crds


def test_a_cluster_is_admitted_and_its_workers_get_a_node_each(stack: Stack) -> None:
    submit(stack, "RayCluster", "first", cluster(workers=2))
    eventually(lambda: is_ready(stack, "first"), "the cluster is ready", 150)
    assert reserved(stack, "first")["status"] == "True"
    assert gpu_places(stack, "first") == sorted(names(gpu_nodes(stack.kube)))
    assert stack.kube.get("v1", "Service", "first-head-svc", TEAM)["spec"]["ports"]


def test_a_job_is_held_with_no_cluster_until_there_is_room_and_then_gets_one_of_its_own(stack: Stack) -> None:
    job = {"entrypoint": "python train.py", "shutdownAfterJobFinishes": True, "rayClusterSpec": cluster(workers=1)}
    submit(stack, "RayJob", "train", job)
    eventually(lambda: reserved(stack, "train").get("status") == "False", "Kueue has seen it")
    assert names(stack.kube.list(API, "RayCluster", TEAM)) == ["first"]
    kubectl(stack, "delete", "raycluster", "first", "--as", USER, "-n", TEAM)
    eventually(lambda: names(stack.kube.list(API, "RayCluster", TEAM)) not in ([], ["first"]), "it has a cluster", 60)
    (own,) = names(stack.kube.list(API, "RayCluster", TEAM))
    assert own.startswith("train-")
    eventually(lambda: is_ready(stack, own), "the cluster is ready", 150)
    assert pods(stack, "first") == []
    (place,) = gpu_places(stack, own)
    assert place in names(gpu_nodes(stack.kube))


def test_a_job_that_has_ended_gives_back_its_nodes_with_its_cluster(stack: Stack) -> None:
    """Here it fails: no dashboard knows of it, though its submitter has ended."""

    def ended() -> bool:
        status = stack.kube.get(API, "RayJob", "train", TEAM).get("status", {})
        return bool(status.get("jobDeploymentStatus") == "Failed")

    eventually(ended, "it has failed", 120)
    eventually(lambda: stack.kube.list("v1", "Pod", TEAM, labels="ray.io/cluster") == [], "its pods are gone")
    workload = stack.kube.list(queues.API, "Workload", TEAM)
    assert [condition(each, "Finished").get("status") for each in workload] == ["True"]


def test_a_job_that_would_keep_its_nodes_is_refused(stack: Stack) -> None:
    with pytest.raises(CommandFailed, match="should delete the cluster after finishing"):
        submit(stack, "RayJob", "greedy", {"entrypoint": "true", "rayClusterSpec": cluster(workers=1)})


def test_one_that_no_quota_could_hold_waits_and_kueue_says_why(stack: Stack) -> None:
    submit(stack, "RayCluster", "large", cluster(workers=3))
    eventually(lambda: GPU_RESOURCE in reserved(stack, "large").get("message", ""), "it is told")
    assert reserved(stack, "large")["status"] == "False"
    assert pods(stack, "large") == []


def test_a_cluster_without_a_queue_is_refused(stack: Stack) -> None:
    with pytest.raises(CommandFailed, match="it has no queue"):
        submit(stack, "RayCluster", "astray", cluster(workers=1), labels={})


def test_with_the_operator_go_its_clusters_and_jobs(stack: Stack) -> None:
    stack.set(operators={**OPERATORS, "kuberay": {"enabled": False}})
    stack.up()
    assert stack.kube.list("v1", "Pod", NAMESPACE, labels="app.kubernetes.io/name=kuberay") == []
    eventually(lambda: stack.kube.list("v1", "Pod", TEAM) == [], "no pod is left")
    eventually(lambda: stack.kube.list(queues.API, "Workload", TEAM) == [], "Kueue has let go of them")
