from __future__ import annotations

import json
import re

import pytest

from tests.unit.operators.admission_cluster import ALICE, QUEUE, SCHEDULED, named, pods, warned, wrapped
from tests.unit.operators.policy_objects import Object

pytestmark = [pytest.mark.simulator, pytest.mark.usefixtures("policies")]


def trained(workers: int, gpus: int) -> Object:
    template = {"template": {"spec": pods(gpus, **SCHEDULED)}}
    replicas = {"Master": template, "Worker": {"replicas": workers, **template}}
    return named("PyTorchJob", {"pytorchReplicaSpecs": replicas}, labels=QUEUE)


def parallel(count: int, gpus: int, queue: str = "default-queue") -> Object:
    labels = {"kueue.x-k8s.io/queue-name": queue}
    return named("Job", {"parallelism": count, "template": {"spec": pods(gpus, **SCHEDULED)}}, labels=labels)


def with_hcas(made: Object, count: int) -> Object:
    (container,) = made["spec"]["template"]["spec"]["containers"]
    container["resources"]["limits"]["nvidia.com/mlnxnics"] = str(count)
    return made


def in_numbers(made: Object) -> Object:
    changed: Object = json.loads(re.sub(r'"nvidia.com/gpu": "(\d+)"', r'"nvidia.com/gpu": \1', json.dumps(made)))
    return changed


TOO_MANY, NO_SUCH_QUEUE = "more GPUs than all quotas have together (24)", "the queue of this job does not exist"
TOO_LARGE = "nodes have at most 8 nvidia.com/gpu. Request fewer in each pod"
CANNOT_START: dict[str, tuple[Object, str]] = {
    "a queue that does not exist": (parallel(1, 1, "nope"), NO_SUCH_QUEUE),
    "a job with more GPUs than all quotas": (parallel(4, 8), TOO_MANY),
    "a PyTorchJob of four nodes": (trained(3, 8), TOO_MANY),
    "an AppWrapper with GPUs as numbers": (wrapped(in_numbers(parallel(4, 8))), TOO_MANY),
    "an AppWrapper around two jobs": (wrapped(parallel(2, 8), parallel(2, 8)), TOO_MANY),
    "a pod that is larger than a node": (parallel(1, 9), TOO_LARGE),
    "a pod with more HCAs than a node": (with_hcas(parallel(1, 8), 9), TOO_LARGE.replace("gpu", "mlnxnics")),
    "a pod of a PyTorchJob": (trained(1, 12), TOO_LARGE),
    "a pod in an AppWrapper": (wrapped(parallel(1, 16)), TOO_LARGE),
}
CAN_START = {
    "a pod with all of a node": with_hcas(parallel(1, 8), 8),
    "a job with all GPUs": parallel(3, 8),
    "a PyTorchJob with all GPUs": trained(2, 8),
    "an AppWrapper with all GPUs and a ConfigMap": wrapped(
        parallel(2, 8), parallel(1, 8), {"apiVersion": "v1", "kind": "ConfigMap"}
    ),
    "a job without GPUs": parallel(1000, 0),
}


@pytest.mark.parametrize("row", CANNOT_START.values(), ids=CANNOT_START.keys())
def test_warns_of_jobs_that_cannot_start(row: tuple[Object, str]) -> None:
    made, why = row
    assert why in warned(ALICE, made)


@pytest.mark.parametrize("made", CAN_START.values(), ids=CAN_START.keys())
def test_does_not_warn_of_jobs_that_can_start(made: Object) -> None:
    assert warned(ALICE, made) == ""
