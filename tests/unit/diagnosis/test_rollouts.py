"""Deployments: whether a rollout has finished."""

from __future__ import annotations

import pytest

from diagnosis.cluster import DEPLOYMENT, Kind
from diagnosis.report import report
from k8s.objects import Object
from tests.unit.diagnosis import objects as make

STUCK = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out"}
REFUSED = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota"}
PAUSED = {"type": "Progressing", "status": "Unknown", "reason": "DeploymentPaused"}


def deployment(counts: tuple[int, ...] = (), *conditions: Object) -> tuple[Kind, Object]:
    """An available Deployment; `counts` are its replicas, those of the newest version, and those unavailable."""
    status: Object = dict(zip(("replicas", "updatedReplicas", "unavailableReplicas"), counts, strict=False))
    status["conditions"] = [{"type": "Available", "status": "True"}, *conditions]
    return DEPLOYMENT, {"metadata": {"name": "train", "uid": "train", "namespace": "ai"}, "spec": {}, "status": status}


@pytest.mark.parametrize(
    ("counts", "conditions", "head"),
    [
        ((), [STUCK], "Pending ProgressDeadlineExceeded: timed out"),
        ((), [REFUSED], "Pending FailedCreate"),
        ((2, 1, 1), [], "Pending 1 of 2 replicas are of the newest version, and 1 is unavailable"),
        ((2, 1, 0), [], "Pending 1 of 2 replicas are of the newest version, and 0 are unavailable"),
        ((4, 4, 1), [], "Pending 4 of 4 replicas are of the newest version, and 1 is unavailable"),
        ((4, 4, 0), [], "Available"),
        ((2, 1, 0), [PAUSED], "Available"),
    ],
)
def test_a_deployment_is_available_once_its_rollout_has_finished(
    counts: tuple[int, ...], conditions: list[Object], head: str
) -> None:
    old = make.pod("train-x", owner="train", on="a", ready=True)
    new = make.pod("train-y", owner="train", on="a", **make.waiting("CrashLoopBackOff"))
    found = report(make.cluster(deployment(counts, *conditions), old, new), "ai", "train")
    assert " ".join(found.head()) == f"train: {head}"
    assert ("pod train-y: CrashLoopBackOff" in [each.why for each in found.findings]) == ("Pending" in head)
