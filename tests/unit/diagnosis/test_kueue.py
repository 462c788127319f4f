"""Each state in which Kueue holds a job back: what is reported of it, and whether waiting helps."""

from __future__ import annotations

from typing import Any

import pytest

from diagnosis.cluster import QUEUED, Cluster, Kind
from diagnosis.finding import Finding
from diagnosis.kueue import CLUSTER_QUEUE
from diagnosis.report import report
from k8s.objects import Object
from tests.unit.diagnosis import objects as make

FLAVORS = "couldn't assign flavors to pod set main: "
UNUSED = "insufficient unused quota for nvidia.com/gpu in flavor h100, 8 more needed"
_LARGE = (
    "insufficient quota for nvidia.com/gpu in flavor {}, previously considered podsets requests ({}) + current podset "
    "request (32) > maximum capacity (16)"
)
H100, A100, SECOND = _LARGE.format("h100", 0), _LARGE.format("a100", 0), _LARGE.format("h100", 8)
SIZE = "it asks for {} nvidia.com/gpu, and flavor {} has 16 at most"
NOT_READY = "Exceeded the PodsReady timeout ai/job-train"
PREEMPTED = (
    "Preempted to accommodate a workload (UID: 1234, JobUID: 5678) due to prioritization in the ClusterQueue; "
    "preemptor path: {}; preemptee path: /blue"
)


def conditions(**said: str | tuple[str, str, str]) -> list[Object]:
    """Conditions as (status, reason, message); a text is the message of one that is False and Pending."""
    parts = {kind: ("False", "Pending", each) if isinstance(each, str) else each for kind, each in said.items()}
    names = ("status", "reason", "message")
    return [{"type": kind, **dict(zip(names, each, strict=True))} for kind, each in parts.items()]


def held(said: list[Object], *more: tuple[Kind, Object], active: bool | None = True, **status: Any) -> Finding:
    """What is reported of a suspended Job whose Workload is in this state."""
    kind, queued = make.queued("main", "")
    queued["spec"]["active"], queued["status"] = active, {"conditions": said, **status}
    cluster = make.cluster(make.job(suspend=True), (kind, queued), *more)
    (finding,) = report(cluster, "ai", "train").findings
    return finding


NEVER = "it never fits in its queue main: "
WAITS = "it has no quota in its queue main: "


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (f"{FLAVORS}{H100}", SIZE.format("32", "h100")),
        (f"{FLAVORS}{SECOND}", SIZE.format("8 + 32", "h100")),
        (f"{FLAVORS}{H100}, {A100}", f"{SIZE.format('32', 'h100')}, {SIZE.format('32', 'a100')}"),
        (f"couldn't assign flavors to pod set a: {UNUSED}; {FLAVORS}{A100}", SIZE.format("32", "a100")),
        (f"{FLAVORS}untolerated taint {{sku gpu NoSchedule <nil>}} in flavor h100", ""),
        (f"{FLAVORS}flavor h100 doesn't match node affinity", ""),
        (f"{FLAVORS}resource example.com/x unavailable in ClusterQueue", ""),
        ("request (800) > maximum capacity (24)", ""),
    ],
)
def test_a_job_that_its_queue_can_never_hold(message: str, why: str) -> None:
    found = held(conditions(QuotaReserved=message))
    assert (found.why, found.lasts) == (f"{NEVER}{why or message.removeprefix(FLAVORS)}", True)


def test_members_of_teams_who_see_no_slack_queue_get_no_final_answer() -> None:
    kind, queued = make.queued("main", "")
    queued["status"] = {"conditions": conditions(QuotaReserved=f"{FLAVORS}{H100}")}
    known = make.cluster(make.job(suspend=True), (kind, queued))
    (found,) = report(Cluster(known._read, only="ai"), "ai", "train").findings
    size = SIZE.format("32", "h100")
    assert found.why == (
        f"it does not fit in its queue main: {size} now; the slack queue lends fewer while nodes are bad"
    )
    assert not found.lasts


@pytest.mark.parametrize(("lent", "lasts"), [("0", False), ("1", True), ("16", True)])
def test_a_job_that_only_the_slack_queue_could_hold_waits_for_nodes(lent: str, lasts: bool) -> None:
    """It lacks 16 GPUs."""
    gpus = {"name": "nvidia.com/gpu", "nominalQuota": "16", "lendingLimit": lent}
    spec = {"resourceGroups": [{"flavors": [{"resources": [gpus]}]}]}
    slack = (CLUSTER_QUEUE, {"metadata": {"name": "slack-cluster-queue", "uid": "q"}, "spec": spec, "status": {}})
    found = held(conditions(QuotaReserved=f"{FLAVORS}{H100}"), slack)
    assert found.lasts == lasts
    assert ("lends 0 of 16 GPUs" in found.why, "never fits" in found.why) == (not lasts, lasts)


@pytest.mark.parametrize(
    ("message", "lasts"),
    [
        (f"{FLAVORS}{UNUSED}", False),
        (f"{FLAVORS}{A100}, {UNUSED}", False),
        (f'{FLAVORS}topology "t" doesn\'t allow to fit any of 2 pod(s)', False),
        ("LocalQueue main doesn't exist", True),
        ("LocalQueue main is terminating or missing", True),
        ("LocalQueue main is stopped", True),
        ("ClusterQueue team doesn't exist", True),
        ("ClusterQueue  doesn't exist", True),
        ("ClusterQueue team is inactive", False),
        ("Workload namespace doesn't match ClusterQueue selector", True),
        ("resources validation failed: limits below requests", True),
        ("Workload no longer fits after processing another workload", False),
        ("waiting for all admitted workloads to be in PodsReady condition", False),
        ("Pending the preemption of 2 workload(s)", False),
        ("Admission is gated by: example.com/budget", False),
    ],
)
def test_a_job_without_quota_may_need_a_change(message: str, lasts: bool) -> None:
    found = held(conditions(QuotaReserved=message))
    assert (found.why, found.lasts) == (f"{WAITS}{' '.join(message.split())}", lasts)


@pytest.mark.parametrize("reason", ["ExceedsMaxQuota", "NoMatchingFlavor", "Misconfigured", "Suspended"])
def test_reasons_of_the_feature_gate_also_show_that_waiting_does_not_help(reason: str) -> None:
    assert held(conditions(QuotaReserved=("False", reason, "in other words"))).lasts
    assert not held(conditions(QuotaReserved=("False", "WaitingForQuota", "in other words"))).lasts


EVICTED = {"QuotaReserved": NOT_READY, "Evicted": ("True", "PodsReadyTimeout", NOT_READY)}
LATE = f"it had quota, but its pods were not ready in time ({NOT_READY})"
BY_RED = ("True", "InCohortReclamation", PREEMPTED.format("/red"))
RETRY = 'Evicted due to AdmissionCheck in Retry state: "prov" (no capacity)'
FALSE = "At least one admission check is false"
QUOTA = ("True", "QuotaReserved", "")


def check(state: str, message: str) -> Object:
    return {"admissionChecks": [{"name": "prov", "state": state, "message": message}]}


@pytest.mark.parametrize(
    ("said", "status", "why", "lasts"),
    [
        (EVICTED, {"requeueState": {"count": 2, "requeueAt": "2026-11-22T10:20:00Z"}},
         f"{LATE}; it is queued again in its queue main at 10:20 UTC (requeue 2)", False),
        (EVICTED, {"requeueState": {"count": 2}}, f"{LATE}; it waits in its queue main (requeue 2)", False),
        ({"QuotaReserved": UNUSED, "Evicted": ("True", "Preempted", BY_RED[2]), "Preempted": BY_RED}, {},
         f"it ran, and Kueue preempted it (InCohortReclamation) for a workload of /red; {WAITS}{UNUSED}", False),
        ({"QuotaReserved": "for a job (UID: 1234)", "Evicted": ("True", "Preempted", "for a job (UID: 1234)")},
         {}, "it ran, and Kueue preempted it for workload 1234; it waits in its queue main", False),
        ({"QuotaReserved": "It is stopped", "Requeued": ("False", "ClusterQueueStopped", ""),
          "Evicted": ("True", "ClusterQueueStopped", "It is stopped")}, {},
         "Kueue evicted it (ClusterQueueStopped: It is stopped); it waits in its queue main", True),
        ({"QuotaReserved": "It is stopped", "Requeued": ("True", "LocalQueueRestarted", ""),
          "Evicted": ("True", "LocalQueueStopped", "It is stopped")}, {},
         "Kueue evicted it (LocalQueueStopped: It is stopped); it waits in its queue main", False),
        ({"QuotaReserved": RETRY, "Evicted": ("True", "AdmissionCheck", RETRY)}, {},
         f"Kueue evicted it (AdmissionCheck: {RETRY}); it waits in its queue main", False),
        ({"QuotaReserved": "x", "Evicted": ("True", "AdmissionCheck", FALSE)}, check("Retry", "no capacity"),
         f"Kueue evicted it (AdmissionCheck: {FALSE}; admission check prov: no capacity); {WAITS}x", False),
        ({"QuotaReserved": "AdmissionGatedBy cleared", "Requeued": ("True", "Reactivated", ""),
          "Evicted": ("True", "DeactivatedDueToRequeuingLimitExceeded", "The workload is deactivated")}, {},
         f"it was deactivated before (The workload is deactivated); {WAITS}AdmissionGatedBy cleared", False),
        ({"QuotaReserved": QUOTA, "Admitted": ("True", "Admitted", "")}, {},
         "Kueue has admitted it, and its job is still suspended", False),
        ({"QuotaReserved": QUOTA, "Admitted": ("False", "UnsatisfiedChecks", "")}, check("Pending", "no node yet"),
         "it has quota in its queue main, and its admission check prov is in state Pending: no node yet", False),
        ({"QuotaReserved": QUOTA}, check("Rejected", "refused"),
         "it has quota in its queue main, and its admission check prov is in state Rejected: refused", True),
        ({"QuotaReserved": QUOTA, "Evicted": ("True", "NodeFailures", "node failed")}, {},
         "Kueue evicted it (NodeFailures: node failed); its pods are being deleted", False),
        ({"Finished": ("True", "OutOfSync", "The prebuilt workload is out of sync")}, {},
         "for Kueue it has finished (OutOfSync), so it is not started: The prebuilt workload is out of sync", True),
        ({"QuotaReserved": "uses DRA resources", "Requeued": ("False", "Inadmissible", "uses DRA resources")}, {},
         f"{WAITS}uses DRA resources", True),
        ({}, {}, "it waits for its turn in its queue main", False),
    ],
)  # fmt: skip
def test_earlier_evictions_are_reported_before_what_the_job_waits_for(
    said: dict[str, Any], status: Object, why: str, lasts: bool
) -> None:
    found = held(conditions(**said), **status)
    assert (found.why, found.lasts) == (why, lasts)


def test_kinds_are_read_from_the_version_that_the_chart_serves() -> None:
    assert QUEUED.api_version == CLUSTER_QUEUE.api_version == "kueue.x-k8s.io/v1beta2"
