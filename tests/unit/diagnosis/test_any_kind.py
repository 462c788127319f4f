from __future__ import annotations

from typing import Any

import pytest

from diagnosis.cluster import (
    CRON_JOB,
    DAEMON_SET,
    JOB,
    JOB_SET,
    LEADER_WORKER_SET,
    QUEUED,
    STATEFUL_SET,
    TRAIN_JOB,
    Cluster,
    Kind,
)
from diagnosis.kubectl import KubectlFailed
from diagnosis.report import report
from k8s.objects import Object
from tests.support.case_files import case_table
from tests.unit.diagnosis import objects as make

MPI_JOB = Kind("kubeflow.org/v2beta1", "MPIJob", "mpijobs")
UNKNOWN = Kind("example.com/v1", "FooJob", "foojobs")
BETWEEN = Kind("example.com/v1", "FooSet", "foosets")
KINDS = [MPI_JOB, JOB_SET, LEADER_WORKER_SET, TRAIN_JOB, CRON_JOB, DAEMON_SET, STATEFUL_SET, UNKNOWN]
SECRET = make.waiting("CreateContainerConfigError", 'secret "t" not found')
QUOTA = 'Error creating: pods "train-" is forbidden: exceeded quota: team, requested: pods=1, used: pods=2'


def thing(kind: Kind, name: str = "train", owner: Object | None = None, **fields: Any) -> tuple[Kind, Object]:
    metadata = {"name": name, "uid": f"{kind.name}-{name}", "namespace": "ai", **by(owner)}
    base = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": {}, "status": {}}
    return kind, base | fields


def by(owner: Object | None) -> Object:
    if owner is None:
        return {}
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    return {"ownerReferences": [{**reference, **{key: owner["metadata"][key] for key in ("name", "uid")}}]}


def pod(owner: Object) -> tuple[Kind, Object]:
    kind, found = make.pod("train-0", on="a", **SECRET)
    found["metadata"] |= by(owner)
    return kind, found


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_owner_of_any_kind_shows_the_cause_of_its_pod(kind: Kind) -> None:
    _, owner = thing(kind)
    why = 'pod train-0: CreateContainerConfigError: secret "t" not found'
    assert why in make.whys((kind, owner), pod(owner))
    made_between = [thing(BETWEEN, "between", owner), thing(JOB, "train-job", thing(BETWEEN, "between", owner)[1])]
    assert why in make.whys((kind, owner), *made_between, pod(made_between[1][1]))
    if kind not in (DAEMON_SET, STATEFUL_SET):  # their status has the phase
        assert make.diagnosed((kind, owner), pod(owner)).phase == "Pending"


def test_an_unreadable_owner_is_found_by_its_pods() -> None:
    _, owner = thing(UNKNOWN)
    why = ['pod train-0: CreateContainerConfigError: secret "t" not found']
    assert make.whys(pod(owner)) == why
    readable = make.cluster(pod(owner))

    def read(kind: Kind, namespace: str) -> list[Object]:
        if kind == UNKNOWN:
            raise KubectlFailed("Error from server (MethodNotAllowed)")
        return readable.all(kind, namespace)

    assert [each.why for each in report(Cluster(read), "ai", "train").findings] == why


@pytest.mark.parametrize("version", ["kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1beta2"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_kueue_holds_back_a_workload_of_any_kind(kind: Kind, version: str) -> None:
    _, owner = thing(kind, spec={} if kind in (DAEMON_SET, STATEFUL_SET) else {"suspend": True})
    queued = make.queued("queue", "insufficient unused quota")[1] | {"apiVersion": version}
    queued["metadata"] |= by(owner)
    found = make.diagnosed((kind, owner), (Kind(version, QUEUED.name, QUEUED.plural), queued)).findings[0]
    assert found.why == "it has no quota in its queue queue: insufficient unused quota"
    assert found.fix == f"kubectl describe workloads.{version.partition('/')[2]}.kueue.x-k8s.io -n ai job-train"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_events_of_a_workload_of_any_kind_are_shown(kind: Kind) -> None:
    _, owner = thing(kind)
    event_kind, event = make.event((kind, owner), "FailedCreate", QUOTA)
    event["involvedObject"] |= {"apiVersion": kind.api_version, "kind": kind.name, "name": "train"}
    assert QUOTA in make.whys((kind, owner), (event_kind, event | {"type": "Warning"}))
    newer = {"metadata": event["metadata"], "reason": event["reason"], "type": "Warning", "note": QUOTA}
    newer |= {"regarding": event["involvedObject"], "eventTime": "2026-11-27T00:10:00.123456Z"}
    assert QUOTA in make.whys((kind, owner), (Kind("events.k8s.io/v1", "Event", "events"), newer))


@case_table(__file__, "phases")
def test_the_phase_of_any_kind_follows_from_its_status(kind: str, status: Object, head: str) -> None:
    (known,) = (each for each in KINDS if each.name == kind)
    if isinstance(given := status.get("conditions"), list):
        keys = ("type", "status", "reason", "message")
        status = {"conditions": [dict(zip(keys, each, strict=True)) for each in given]}
    _, owner = thing(known, status=status)
    child = thing(JOB, "train-job", owner)
    assert make.diagnosed((known, owner), child).head() == [f"train: {head}"]


@pytest.mark.parametrize("kind", [JOB_SET, TRAIN_JOB, UNKNOWN], ids=lambda kind: kind.name)
def test_a_workload_is_running_if_all_pods_are_ready(kind: Kind) -> None:
    over = [{"type": each, "status": "False", "message": "x"} for each in ("Suspended", "StartupPolicyInProgress")]
    _, owner = thing(kind, status={"conditions": over})
    ready = make.pod("train-0", on="a", ready=True)
    ready[1]["metadata"] |= by(owner)
    found = make.diagnosed((kind, owner), ready)
    assert (found.phase, found.findings) == ("Running", ())
    assert "Suspended" not in "".join(make.whys((kind, owner), pod(owner)))
