"""Pods with which nothing is wrong and that are not ready: how far they are is told, and only where nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from diagnosis.cluster import DEPLOYMENT, REPLICA_SET, Kind
from diagnosis.report import report
from k8s.objects import Object
from tests.units.diagnosis import objects as make

REFUSED = 'Readiness probe failed: Get "http://10.0.0.1:8888/api": dial tcp 10.0.0.1:8888: connect: connection refused'
STARTING: Object = {"containerStatuses": [{"image": "x", "state": {"waiting": {"reason": "ContainerCreating"}}}]}
RUNS: Object = {"phase": "Running", "containerStatuses": [{"image": "x", "state": {"running": {}}}]}


def told(*objects: tuple[Kind, Object]) -> list[str]:
    """What is said of a notebook server that is not available."""
    metadata = {"name": "jupyterlab", "uid": "lab", "namespace": "ai"}
    replicas = {"metadata": {"name": "rs", "uid": "rs", "namespace": "ai", "ownerReferences": make.owned_by("lab")}}
    deployment = {"metadata": metadata, "spec": {"template": make.pod("x")[1]}, "status": {}}
    found = report(make.cluster((DEPLOYMENT, deployment), (REPLICA_SET, replicas), *objects), "ai", "jupyterlab")
    assert found.phase == "Pending"
    assert all(finding.passing for finding in found.findings)
    return [finding.why for finding in found.findings]


def pod(name: str = "jupyterlab-0", **status: Any) -> tuple[Kind, Object]:
    return make.pod(name, owner="rs", on="a", **status)


@pytest.mark.parametrize("status", [{}, STARTING])
def test_pods_that_start(status: Object) -> None:
    assert told(pod(**status)) == ["pod jupyterlab-0 on node a is being started"]
    many = [make.pod(f"jupyterlab-{number}", owner="rs", on=f"n{number}", **status) for number in range(3)]
    assert told(*many) == ["3 pods, as jupyterlab-0 on node n0 are being started"]


def test_a_pod_that_runs_and_is_not_ready_is_told_with_what_its_probe_said() -> None:
    running = pod(**RUNS)
    assert told(running) == ["pod jupyterlab-0 on node a is running, and not ready yet"]
    assert told(running, make.event(running, "Unhealthy", REFUSED)) == [
        f"pod jupyterlab-0 on node a is running, and not ready yet: {REFUSED}"
    ]


def test_a_pod_that_its_successor_waits_for() -> None:
    ending = pod(**RUNS)
    ending[1]["metadata"]["deletionTimestamp"] = "2026-11-22T10:00:00Z"
    assert told(ending) == ["pod jupyterlab-0 on node a is asked to end"]
    ending[1]["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking"]
    kept = "asked to end, and kept until its finalizer batch.kubernetes.io/job-tracking is removed"
    assert told(ending) == [f"pod jupyterlab-0 on node a is {kept}"]
    event = make.event(ending, "FailedKillPod", "error killing pod: unmount: device or resource busy")
    why = "asked to end: error killing pod: unmount: device or resource busy"
    assert told(ending, event) == [f"pod jupyterlab-0 on node a is {why}"]


def test_before_there_are_pods() -> None:
    assert told(make.node("a", taints=())) == ["its pods are not made yet"]
