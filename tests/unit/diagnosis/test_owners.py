from __future__ import annotations

import pytest

from diagnosis.cluster import (
    DEPLOYMENT,
    JOB,
    RAY_CLUSTER,
    RAY_JOB,
    RAY_SERVICE,
    REPLICA_SET,
    WORKLOADS,
    Kind,
)
from diagnosis.owners import makers_of
from k8s.objects import Object
from tests.support.case_files import case_table
from tests.unit.diagnosis import objects as make

QUOTA = 'pods "train-" is forbidden: exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2'
CHAINS = {
    **{name: [WORKLOADS[name]] for name in ("job", "vcjob", "pytorchjob", "rayjob")},
    "a RayJob's cluster": [RAY_JOB, RAY_CLUSTER],
    "a RayJob's submitter": [RAY_JOB, JOB],
    "a Deployment's ReplicaSet": [DEPLOYMENT, REPLICA_SET],
}


def made(*kinds: Kind) -> list[tuple[Kind, Object]]:
    """The first object is the workload; each owns the next."""
    found = []
    for number, kind in enumerate(kinds):
        owner = {"ownerReferences": make.owned_by(f"train{number - 1}")} if number else {}
        name = f"train{number}" if number else "train"
        metadata = {"name": name, "uid": f"train{number}", "namespace": "ai", **owner}
        found.append((kind, {"metadata": metadata, "spec": {}, "status": {}}))
    return found


def warned(about: tuple[Kind, Object], reason: str, message: str, minute: int = 0) -> tuple[Kind, Object]:
    kind, event = make.event(about, reason, message, f"2026-11-22T10:{minute:02}:00Z")
    return kind, event | {"type": "Warning"}


@pytest.mark.parametrize("kinds", CHAINS.values(), ids=CHAINS)
@case_table(__file__, "refusals")
def test_shows_the_rejection_of_any_object_in_the_chain(kinds: list[Kind], reason: str, message: str) -> None:
    objects = made(*kinds)
    assert message in make.whys(*objects, warned(objects[-1], reason, message))


@case_table(__file__, "symptoms")
def test_shows_the_cause_although_symptoms_follow(later: tuple[str, str]) -> None:
    objects = made(JOB)
    first = warned(objects[0], "FailedCreate", f"Error creating: {QUOTA}")
    assert make.whys(*objects, first, warned(objects[0], *later, minute=5)) == [f"Error creating: {QUOTA}"]


@pytest.mark.parametrize("kind", [REPLICA_SET, RAY_CLUSTER])
def test_shows_the_condition_without_events(kind: Kind) -> None:
    objects = made(DEPLOYMENT if kind == REPLICA_SET else RAY_JOB, kind)
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": QUOTA}
    objects[1][1]["status"] = {"conditions": [failure]}
    assert make.whys(*objects) == [QUOTA]


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (RAY_CLUSTER, {"state": "failed", "reason": QUOTA}),
        (RAY_CLUSTER, {"reason": QUOTA}),
        (RAY_JOB, {"jobDeploymentStatus": "Initializing", "rayClusterStatus": {"reason": QUOTA}}),
        (RAY_SERVICE, {"pendingServiceStatus": {"rayClusterStatus": {"state": "failed", "reason": QUOTA}}}),
    ],
)
def test_shows_the_reason_of_a_raycluster_or_its_copy(kind: Kind, status: Object) -> None:
    ((_, ray),) = made(kind)
    assert make.whys((kind, ray | {"status": status})) == [QUOTA]


def test_shows_rejected_workers_although_the_head_is_ready() -> None:
    ((kind, ray),) = made(RAY_CLUSTER)
    head = make.pod("train-head", owner="train0", on="a", ready=True)
    for state, expected in (("", [QUOTA]), ("failed", [QUOTA]), ("ready", [])):
        assert make.whys((kind, ray | {"status": {"state": state, "reason": QUOTA}}), head) == expected


@pytest.mark.parametrize("copied", [True, False])
def test_a_rayjob_that_failed_without_pods_shows_the_reason_of_its_cluster(copied: bool) -> None:
    (_, job), (_, ray) = made(RAY_JOB, RAY_CLUSTER)
    job["status"] = {"jobDeploymentStatus": "Failed", "reason": "DeadlineExceeded"}
    (job["status"] if copied else ray)["rayClusterStatus" if copied else "status"] = {"reason": QUOTA}
    assert make.diagnosed((RAY_JOB, job), (RAY_CLUSTER, ray)).remarks == (QUOTA,)


@case_table(__file__, "lasting")
def test_some_rejections_last(message: str, lasts: bool) -> None:
    objects = made(JOB)
    (finding,) = make.diagnosed(*objects, warned(objects[0], "FailedCreate", message)).findings
    assert finding.lasts is lasts


def test_follows_the_chain_of_owners_even_in_a_circle() -> None:
    objects = made(RAY_JOB, RAY_CLUSTER, JOB)
    objects[0][1]["metadata"]["ownerReferences"] = make.owned_by("train2")
    assert makers_of(make.cluster(*objects), "ai", "train0") == ["train0", "train1", "train2"]
