from __future__ import annotations

from typing import Any

import pytest

from diagnosis.cluster import Cluster, Kind
from diagnosis.finding import Finding
from diagnosis.kueue import CLUSTER_QUEUE
from diagnosis.report import report
from k8s.objects import Object
from tests.support.case_files import case_table
from tests.unit.diagnosis import objects as make

FLAVORS = "couldn't assign flavors to pod set main: "
UNUSED = "insufficient unused quota for nvidia.com/gpu in flavor h100, 8 more needed"
_LARGE = (
    "insufficient quota for nvidia.com/gpu in flavor {}, previously considered podsets requests ({}) + current podset "
    "request (32) > maximum capacity (16)"
)
H100, A100, SECOND = _LARGE.format("h100", 0), _LARGE.format("a100", 0), _LARGE.format("h100", 8)
SIZE = "it requests {} nvidia.com/gpu, and flavor {} has 16 at most"
NOT_READY = "Exceeded the PodsReady timeout ai/job-train"
PREEMPTED = (
    "Preempted to accommodate a workload (UID: 1234, JobUID: 5678) due to prioritization in the ClusterQueue; "
    "preemptor path: /red; preemptee path: /blue"
)


def conditions(**states: str | tuple[str, str, str]) -> list[Object]:
    """Returns conditions from (status, reason, message); a text is the message of a False, Pending condition."""
    parts = {kind: ("False", "Pending", each) if isinstance(each, str) else each for kind, each in states.items()}
    names = ("status", "reason", "message")
    return [{"type": kind, **dict(zip(names, each, strict=True))} for kind, each in parts.items()]


def held(states: list[Object], *more: tuple[Kind, Object], active: bool | None = True, **status: Any) -> Finding:
    kind, queued = make.queued("main", "")
    queued["spec"]["active"], queued["status"] = active, {"conditions": states, **status}
    cluster = make.cluster(make.job(suspend=True), (kind, queued), *more)
    (finding,) = report(cluster, "ai", "train").findings
    return finding


NEVER = "it never fits in its queue main: "
WAITS = "it has no quota in its queue main: "


@case_table(__file__, "never", flavors=FLAVORS, large_h100=H100, large_a100=A100, larger_h100=SECOND, unused=UNUSED)
def test_a_job_that_never_fits_in_its_queue(message: str, why: str) -> None:
    found = held(conditions(QuotaReserved=message))
    assert (found.why, found.lasts) == (f"{NEVER}{why or message.removeprefix(FLAVORS)}", True)


def test_without_the_slack_queue_a_misfit_is_not_final() -> None:
    kind, queued = make.queued("main", "")
    queued["status"] = {"conditions": conditions(QuotaReserved=f"{FLAVORS}{H100}")}
    known = make.cluster(make.job(suspend=True), (kind, queued))
    (found,) = report(Cluster(known._read, only="ai"), "ai", "train").findings
    size = SIZE.format("32", "h100")
    assert found.why == (
        f"it does not fit in its queue main: {size} now; the slack queue lends fewer GPUs while nodes are bad"
    )
    assert not found.lasts


@pytest.mark.parametrize(("lent", "lasts"), [("0", False), ("1", True), ("16", True)])
def test_a_job_that_lacks_16_gpus_of_the_slack_queue_waits_for_nodes(lent: str, lasts: bool) -> None:
    gpus = {"name": "nvidia.com/gpu", "nominalQuota": "16", "lendingLimit": lent}
    spec = {"resourceGroups": [{"flavors": [{"resources": [gpus]}]}]}
    slack = (CLUSTER_QUEUE, {"metadata": {"name": "slack-cluster-queue", "uid": "q"}, "spec": spec, "status": {}})
    found = held(conditions(QuotaReserved=f"{FLAVORS}{H100}"), slack)
    assert found.lasts == lasts
    assert ("lends 0 of 16 GPUs" in found.why, "never fits" in found.why) == (not lasts, lasts)


@case_table(__file__, "without_quota")
def test_a_job_without_quota(message: str, lasts: bool) -> None:
    found = held(conditions(QuotaReserved=message))
    assert (found.why, found.lasts) == (f"{WAITS}{' '.join(message.split())}", lasts)


@pytest.mark.parametrize("reason", ["ExceedsMaxQuota", "NoMatchingFlavor", "Misconfigured", "Suspended"])
def test_some_reasons_of_the_feature_gate_last(reason: str) -> None:
    assert held(conditions(QuotaReserved=("False", reason, "in other words"))).lasts
    assert not held(conditions(QuotaReserved=("False", "WaitingForQuota", "in other words"))).lasts


@case_table(__file__, "evictions", unused=UNUSED, waits=WAITS, not_ready=NOT_READY, preempted=PREEMPTED)
def test_shows_an_earlier_eviction_first(states: dict[str, Any], status: Object, why: str, lasts: bool) -> None:
    found = held(conditions(**states), **status)
    assert (found.why, found.lasts) == (why, lasts)
