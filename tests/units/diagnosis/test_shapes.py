"""Objects with nulls, without fields, with values of other types, or with unknown fields."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnosis.cluster import (
    CLAIM,
    CONFIG_MAP,
    DEPLOYMENT,
    EVENT,
    NODE,
    POD,
    QUEUED,
    RAY_CRON_JOB,
    RAY_SERVICE,
    REPLICA_SET,
    STATEFUL_SET,
    TRAINING_JOBS,
    Cluster,
    Kind,
)
from diagnosis.kueue import CLUSTER_QUEUE
from diagnosis.report import platform, report
from diagnosis.volcano import QUEUE
from k8s.objects import Object
from tests.units.diagnosis import objects

Objects = list[tuple[Kind, Object]]
_AT = "2026-11-22T10:00:00Z"


def _full(name: str) -> Objects:
    """Returns a workload of each kind by that name, with nodes and pods in the states whose fields are read."""
    metadata = {"name": name, "uid": name, "namespace": "ai", "annotations": {"a": "b"}}
    terminating = objects.pod("t", owner=name, on="lost")
    terminating[1]["metadata"] |= {"deletionTimestamp": _AT, "creationTimestamp": _AT}
    failed = objects.pod("f", owner=name, on="good", **objects.waiting("CrashLoopBackOff", "back-off"))
    failed[1]["status"]["containerStatuses"][0]["lastState"] = {"terminated": {"exitCode": 1, "finishedAt": _AT}}
    mounting = objects.pod("m", owner=name, on="good", **objects.waiting("ContainerCreating"))
    waiting = objects.worker("w", name, said="0/2 nodes are available: 2 Insufficient nvidia.com/gpu.")
    waiting[1]["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    claim = (CLAIM, {"metadata": {"name": "data", "uid": "claim", "namespace": "ai"}, "status": {"phase": "Pending"}})
    ray = objects.ray_job("Retrying", "FAILED", message="submission failed")
    ray[1]["metadata"]["name"] = f"{name}-r"
    ray[1]["status"]["failed"] = 1
    template = {"metadata": {}, "spec": {"containers": [{"name": "main"}]}}
    task = {"name": "worker", "replicas": 2, "template": template}
    gated = objects.pod("g", owner=name)
    gated[1]["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    cluster_of_ray = objects.ray_cluster(name)
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreateHeadPod", "message": "forbidden"}
    cluster_of_ray[1]["status"] = {"reason": "forbidden", "conditions": [failure]}
    config = {"appwrapper": {"faultTolerance": {"retryLimit": 3}}}
    return [
        *_nodes(), terminating, failed, mounting, waiting, claim, objects.group(name, name),
        objects.event(mounting, "FailedMount", "MountVolume.SetUp failed"), objects.event(claim, "FailedBinding", "no"),
        objects.event(failed, "Unhealthy", "probe failed"), objects.cluster_policy("notReady", "OFED"),
        objects.nic_policy("notReady", {"name": "state-OFED", "state": "notReady", "message": "wait"}),
        *objects.operators(), objects.driver_pod("sriovdp", "good", generation="0"),
        objects.driver_pod("sriovdp", "lost"),
        objects.volcano_job(f"{name}-v", tasks=[task], schedulerName="volcano"),
        objects.job(name, parallelism=2, template=template, backoffLimit=6, suspend=False),
        objects.app_wrapper(f"{name}-a", "Resetting"), objects.pytorch_job(f"{name}-p", Running="True"),
        ray, cluster_of_ray, objects.queued("queue", "no quota", owner="ai/g"), gated,
        (CONFIG_MAP, {"metadata": {"name": "appwrapper-operator-config", "uid": "c", "namespace": "appwrapper-system"},
                      "data": {"config.yaml": str(config)}}),
        (DEPLOYMENT, {"metadata": {**metadata, "name": f"{name}-d"}, "spec": {"template": template}, "status": {}}),
        (REPLICA_SET, {"metadata": {**metadata, "uid": "rs", "ownerReferences": objects.owned_by(name)}, "spec": {}}),
        *_queues(name), *_scaling(waiting), *_other_kinds(name),
    ]  # fmt: skip


def _other_kinds(name: str) -> Objects:
    """Returns an MPIJob, a RayService that is upgraded, a RayCronJob, a StatefulSet and a pod."""
    rank = {"replicas": 2, "template": {"spec": {"containers": [{"name": "main"}]}}}
    created = [{"type": "Restarting", "status": "True", "reason": "MPIJobRestarting", "message": "1 replica failed"}]
    deployment = {"status": "DEPLOY_FAILED", "message": "it has failed 3 times"}
    application = {"status": "DEPLOY_FAILED", "message": "failed", "serveDeploymentStatuses": {"v": deployment}}
    serving = {"rayClusterName": "a", "trafficRoutedPercent": 20, "applicationStatuses": {"llm": application}}
    ready = {"type": "Ready", "status": "False", "reason": "Initializing", "message": "initializing"}
    states: dict[str, tuple[Kind, Object, Object]] = {
        "m": (TRAINING_JOBS["mpijob"], {"mpiReplicaSpecs": {"Worker": rank}}, {"conditions": created}),
        "w": (RAY_SERVICE, {"rayClusterConfig": {"suspend": False}}, {"conditions": [ready], "serviceStatus": "",
              "activeServiceStatus": serving, "pendingServiceStatus": copy.deepcopy(serving)}),
        "c": (RAY_CRON_JOB, {"schedule": "@daily", "suspend": False}, {"lastScheduleTime": _AT}),
        "f": (STATEFUL_SET, {"replicas": 2, "updateStrategy": {"type": "x", "rollingUpdate": {"partition": 0}}},
              {"readyReplicas": 2, "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b"}),
    }  # fmt: skip
    pod = objects.pod(f"{name}-b", on="good", **objects.waiting("ErrImagePull", "not found"))
    return [pod, objects.group("m", f"{name}-m"), *(
        (kind, {"metadata": {"name": f"{name}-{letter}", "uid": f"{name}-{letter}", "namespace": "ai"},
                "spec": spec, "status": status}) for letter, (kind, spec, status) in states.items())]  # fmt: skip


def _nodes() -> Objects:
    """Returns a node that is ready, and one that is lost."""
    lost = objects.node("lost", gpu=7, nics=8)
    lost[1]["status"]["conditions"] = [
        {"type": "Ready", "status": "Unknown", "message": "silent", "lastTransitionTime": _AT},
        {"type": "ai-on-aks/GPUMissing", "status": "True", "message": "7 of 8"},
    ]
    lost[1]["spec"] |= {"unschedulable": True}
    lost[1]["spec"]["taints"] = [
        {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": _AT},
        {"key": "aznhc", "value": "failed", "effect": "NoSchedule"},
    ]
    lost[1]["metadata"] |= {
        "labels": {"node.kubernetes.io/instance-type": "Standard_ND96isr_H100_v5"},
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}],
    }
    good = objects.node("good", gpu=8, nics=8)
    good[1]["status"]["capacity"] = {"nvidia.com/gpu": "8", "rdma/ib": "1k", "cpu": "96", "memory": "1900Gi"}
    good[1]["metadata"]["labels"] |= lost[1]["metadata"]["labels"]
    return [good, lost]


def _queues(name: str) -> Objects:
    """Returns a workload that Kueue and Volcano hold back, with their objects."""
    metadata = {"name": "queue", "uid": "queue"}
    wrapper = {"name": "held", "uid": "held", "namespace": "ai", "ownerReferences": objects.owned_by(f"{name}-s")}
    states = {"Evicted": "True", "Preempted": "True", "Requeued": "False", "QuotaReserved": "False"}
    conditions = [
        {"type": key, "status": value, "reason": key, "message": f"{key} why"} for key, value in states.items()
    ]
    checks = [{"name": "provision", "state": "Retry", "message": "no capacity"}]
    status = {"conditions": conditions, "admissionChecks": checks, "requeueState": {"count": 2, "requeueAt": _AT}}
    kind, suspended = objects.job(f"{name}-s", suspend=True)
    suspended["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "queue"}
    group = objects.group(f"{name}-v", f"{name}-v")
    group[1]["spec"] = {"queue": "queue", "minMember": 2, "minResources": {"nvidia.com/gpu": "16"}}
    return [
        (kind, suspended),
        (QUEUED, {"metadata": wrapper, "spec": {"queueName": "queue", "active": True}, "status": status}),
        (CLUSTER_QUEUE, {"metadata": metadata, "spec": {}, "status": {"conditions": [
            {"type": "Active", "status": "False", "reason": "Stopped", "message": "it is stopped"}]}}),
        (QUEUE, {"metadata": metadata, "spec": {"capability": {"nvidia.com/gpu": "8"}}, "status": {"state": "Open"}}),
        group, objects.event(group, "Unschedulable", "queue resource quota insufficient"),
    ]  # fmt: skip


def _scaling(pod: tuple[Kind, Object]) -> Objects:
    """Returns the status of the autoscaler and its events of a pod that waits."""
    health = {"maxSize": 2, "cloudProviderTarget": 2}
    backoff = {"status": "Backoff", "backoffInfo": {"errorCode": "AllocationFailed", "errorMessage": "no capacity"}}
    groups = [{"name": "aks-gpu4082-1-vmss", "health": health, "scaleUp": backoff}]
    metadata = {"name": "cluster-autoscaler-status", "uid": "s", "namespace": "kube-system"}
    return [
        (CONFIG_MAP, {"metadata": metadata, "data": {"status": json.dumps({"nodeGroups": groups})}}),
        objects.event(pod, "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached"),
        objects.event(pod, "TriggeredScaleUp", "pod triggered scale-up: [{aks-gpu4082-1-vmss 0->1 (max: 2)}]"),
    ]


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield (*path, key)
        yield from _paths(below, (*path, key))


def _changed(obj: Object, path: tuple[Any, ...], value: Any) -> None:
    """Sets what is at the path, or deletes it for the value `delete`."""
    for key in path[:-1]:
        obj = obj[key]
    if value == "delete":
        del obj[path[-1]]
    else:
        obj[path[-1]] = copy.deepcopy(value)


def _cluster(given: Objects) -> Cluster:
    def read(kind: Kind, namespace: str) -> list[Object]:
        return [obj for of, obj in given if of == kind]

    return Cluster(read)


VALID = _full("train")
PLACES = [(index, path) for index, (_, obj) in enumerate(VALID) for path in _paths(obj)]
ODD: st.SearchStrategy[Any] = st.sampled_from(
    ["delete", None, "", "-3", "1k", "text", "9e999", 7, -1, 10**12, 1.5, True, False, [], {}, [None], [1], {"a": None},
     [{}]]
)  # fmt: skip


@given(changes=st.lists(st.tuples(st.sampled_from(PLACES), ODD), min_size=1, max_size=4))
@settings(max_examples=150)
def test_no_object_crashes_a_diagnosis(changes: list[tuple[tuple[int, tuple[Any, ...]], Any]]) -> None:
    objects_now = copy.deepcopy(VALID)
    for (index, path), value in changes:
        try:
            _changed(objects_now[index][1], path, value)
        except (KeyError, TypeError, IndexError):
            continue  # an earlier change removed it
    cluster = _cluster(objects_now)
    assert platform(cluster).lines()
    for workload in ("train", *(f"train-{letter}" for letter in "vapdrsmwcfb")):
        assert report(cluster, "ai", workload).lines()


@pytest.mark.parametrize("kind", [POD, NODE, EVENT])
def test_an_object_with_nothing_in_it_crashes_no_diagnosis(kind: Kind) -> None:
    assert platform(_cluster([*VALID, (kind, {}), (kind, {"metadata": None, "spec": None, "status": None})])).lines()


@pytest.mark.parametrize("replicas", [[], "2", None, 10**12])
def test_a_deployment_with_an_odd_number_of_replicas_crashes_no_diagnosis(replicas: Any) -> None:
    spec = {"replicas": replicas, "template": {"spec": {"containers": []}}}
    deployment = {"metadata": {"name": "lab", "uid": "lab", "namespace": "ai"}, "spec": spec, "status": {}}
    assert report(_cluster([(DEPLOYMENT, deployment)]), "ai", "lab").lines()


def test_an_event_without_a_uid_is_about_the_object_of_its_kind_and_name() -> None:
    about = {"kind": "Pod", "name": "train-0", "namespace": "ai"}
    event: Object = {"metadata": {"namespace": "ai"}, "involvedObject": about, "reason": "x", "message": "y"}
    kind, pod = objects.pod("train-0")
    other, same_name = objects.job("train-0")
    cluster = _cluster([(kind, {"kind": "Pod", **pod}), (other, {"kind": "Job", **same_name}), (EVENT, event)])
    assert [len(cluster.events(obj)) for obj in (*cluster.all(kind), *cluster.all(other))] == [1, 0]


def test_owners_and_events_without_a_uid_belong_to_no_object() -> None:
    nameless: Object = {"metadata": {"name": "other", "namespace": "ai", "ownerReferences": [{"name": "x"}]}}
    event: Object = {"metadata": {"namespace": "ai"}, "reason": "FailedMount", "message": "not ours"}
    cluster = _cluster([objects.job(), (POD, nameless), (EVENT, event)])
    (pod,) = cluster.all(POD)
    assert not cluster.owned(POD, "ai", [""])
    assert not cluster.events(pod)
