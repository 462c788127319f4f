"""Jobs do not start, because the simulator does not run Ray in the pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from config.data.scheduling import GPU_RESOURCE, VOLCANO
from k8s.objects import Object, holds
from operators.kueue import queues
from tests.e2e.team_jobs import QUEUED, apply, kubectl, quota_reserved, shared_stack
from tests.support.manifests import manifest
from tests.support.world import CommandFailed, Stack, eventually, gpu_nodes, names

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
API, TEAM, USER, NAMESPACE = "ray.io/v1", "blue", "alice", "mlbatch-system"
OPERATORS: dict[str, Any] = {"kueue": {"enabled": True}, "kuberay": {"enabled": True}}


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    teams = {TEAM: {"gpus": 16, "users": [USER]}}
    return shared_stack(new_stack, "ray", nodes=2, operators=OPERATORS, teams=teams)


def cluster(workers: int) -> Object:
    def pod(**limits: Any) -> Object:
        resources = {"limits": {"cpu": 1, "memory": "2Gi", **limits}}
        container = {"name": "ray", "image": "rayproject/ray:2.52.0", "resources": resources}
        return {"spec": {"schedulerName": VOLCANO, "terminationGracePeriodSeconds": 0, "containers": [container]}}

    size = dict.fromkeys(("replicas", "minReplicas", "maxReplicas"), workers)
    group = {"groupName": "gpus", **size, "rayStartParams": {}, "template": pod(**{GPU_RESOURCE: 8})}
    return {"headGroupSpec": {"rayStartParams": {}, "template": pod()}, "workerGroupSpecs": [group]}


def submit(stack: Stack, kind: str, name: str, spec: Object) -> None:
    apply(stack, manifest(API, kind, name, labels=QUEUED, spec=spec), TEAM, USER)


def pods(stack: Stack, name: str) -> list[Object]:
    return stack.kube.list("v1", "Pod", TEAM, labels=f"ray.io/cluster={name}")


def is_ready(stack: Stack, name: str) -> bool:
    found: str = stack.kube.get(API, "RayCluster", name, TEAM).get("status", {}).get("state", "")
    return found == "ready"


def gpu_places(stack: Stack, name: str) -> list[str]:
    workers = (pod for pod in pods(stack, name) if pod["metadata"]["labels"]["ray.io/node-type"] == "worker")
    return sorted(pod["spec"].get("nodeName", "") for pod in workers)


def test_the_operator_runs_and_a_second_up_changes_nothing(stack: Stack) -> None:
    stack.up("--expect-no-changes")
    (operator,) = stack.kube.list("v1", "Pod", NAMESPACE, labels="app.kubernetes.io/name=kuberay")
    assert holds(operator, "Ready")
    assert "reason" not in operator["status"], "its process really runs"
    crds = names(stack.kube.list("apiextensions.k8s.io/v1", "CustomResourceDefinition"))
    assert "rayjobs.ray.io" in crds
    assert "raycronjobs.ray.io" not in crds


def test_workers_of_an_admitted_cluster_get_a_node_each(stack: Stack) -> None:
    submit(stack, "RayCluster", "first", cluster(workers=2))
    eventually(lambda: is_ready(stack, "first"), "the cluster is ready", 150)
    assert quota_reserved(stack, TEAM, "first")["status"] == "True"
    assert gpu_places(stack, "first") == sorted(names(gpu_nodes(stack.kube)))
    assert stack.kube.get("v1", "Service", "first-head-svc", TEAM)["spec"]["ports"]


def test_a_job_waits_without_a_cluster_until_its_quota_is_free(stack: Stack) -> None:
    job = {"entrypoint": "python train.py", "shutdownAfterJobFinishes": True, "rayClusterSpec": cluster(workers=1)}
    submit(stack, "RayJob", "train", job)
    eventually(lambda: quota_reserved(stack, TEAM, "train").get("status") == "False", "Kueue has seen it")
    assert names(stack.kube.list(API, "RayCluster", TEAM)) == ["first"]
    kubectl(stack, "delete", "raycluster", "first", "--as", USER, "-n", TEAM)
    eventually(lambda: names(stack.kube.list(API, "RayCluster", TEAM)) not in ([], ["first"]), "it has a cluster", 60)
    (own,) = names(stack.kube.list(API, "RayCluster", TEAM))
    assert own.startswith("train-")
    eventually(lambda: is_ready(stack, own), "the cluster is ready", 150)
    assert pods(stack, "first") == []
    (place,) = gpu_places(stack, own)
    assert place in names(gpu_nodes(stack.kube))


def test_an_ended_job_frees_its_nodes_and_deletes_its_cluster(stack: Stack) -> None:
    """The job fails here: its submitter ended, but no dashboard has the job."""

    def has_failed() -> bool:
        status = stack.kube.get(API, "RayJob", "train", TEAM).get("status", {})
        return bool(status.get("jobDeploymentStatus") == "Failed")

    eventually(has_failed, "it has failed", 120)
    eventually(lambda: stack.kube.list("v1", "Pod", TEAM, labels="ray.io/cluster") == [], "its pods are gone")
    workload = stack.kube.list(queues.API, "Workload", TEAM)
    assert [holds(each, "Finished") for each in workload] == [True]


def test_kueue_rejects_a_job_that_would_keep_its_cluster(stack: Stack) -> None:
    with pytest.raises(CommandFailed, match="should delete the cluster after finishing"):
        submit(stack, "RayJob", "greedy", {"entrypoint": "true", "rayClusterSpec": cluster(workers=1)})


def test_disabling_the_operator_deletes_its_clusters_and_jobs(stack: Stack) -> None:
    stack.set(operators={**OPERATORS, "kuberay": {"enabled": False}})
    stack.up()
    assert stack.kube.list("v1", "Pod", NAMESPACE, labels="app.kubernetes.io/name=kuberay") == []
    eventually(lambda: stack.kube.list("v1", "Pod", TEAM) == [], "no pod is left")
    eventually(lambda: stack.kube.list(queues.API, "Workload", TEAM) == [], "Kueue's Workloads are deleted")
