"""Each state in which Kueue holds a job back: what is reported of it, and whether waiting helps."""

from __future__ import annotations

from typing import Any

import pytest

from diagnosis.cluster import CONFIG_MAP, QUEUED, Cluster, Kind
from diagnosis.finding import Finding
from diagnosis.kueue import CLUSTER_QUEUE, LOCAL_QUEUE
from diagnosis.report import report
from k8s.objects import Object
from tests.units.diagnosis import objects as make

LOOK = "kubectl describe workloads.v1beta2.kueue.x-k8s.io -n ai job-train"
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


def test_a_job_that_is_too_large_names_the_setting_of_its_quota() -> None:
    found = held(conditions(QuotaReserved=f"{FLAVORS}{H100}"))
    assert found.fix == f"{LOOK}    # ask for less, or have the quota raised (teams.<team>.gpus)"
    found = held(conditions(QuotaReserved=f"{FLAVORS}{H100.replace('nvidia.com/gpu', 'cpu')}"))
    assert found.fix == (
        f"{LOOK}    # ask for less cpu, or have the quota raised (teams.<team>.gpus, each with its share of cpu)"
    )


@pytest.mark.parametrize("reason", ["ExceedsMaxQuota", "NoMatchingFlavor", "Misconfigured", "Suspended"])
def test_reasons_of_the_feature_gate_also_show_that_waiting_does_not_help(reason: str) -> None:
    assert held(conditions(QuotaReserved=("False", reason, "in other words"))).lasts
    assert not held(conditions(QuotaReserved=("False", "WaitingForQuota", "in other words"))).lasts


def test_an_inactive_queue_is_reported_with_its_reason() -> None:
    said = conditions(Active=("False", "FlavorNotFound", "references missing ResourceFlavor(s): h100"))
    queue = (CLUSTER_QUEUE, {"metadata": {"name": "team", "uid": "q"}, "status": {"conditions": said}})
    found = held(conditions(QuotaReserved="ClusterQueue team is inactive"), queue)
    assert found.why == f"{WAITS}ClusterQueue team is inactive: references missing ResourceFlavor(s): h100"
    assert found.lasts


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


TOO_OFTEN = "exceeding the maximum number of re-queuing retries"
"""Kueue's words at its requeue limit (0.19.2, pkg/controller/core/workload_controller.go, triggerDeactivation)."""


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            {"Evicted": ("True", "Deactivated", f"The workload is deactivated due to {TOO_OFTEN}")},
            f"The workload is deactivated due to {TOO_OFTEN}",
        ),
        (
            {"DeactivationTarget": ("True", "MaximumExecutionTimeExceeded", "exceeding the maximum execution time")},
            "exceeding the maximum execution time",
        ),
        ({}, "spec.active is false"),
    ],
)
def test_a_deactivated_job_is_not_queued_again_until_a_user_activates_it(said: dict[str, Any], why: str) -> None:
    found = held(conditions(**said), active=False)
    assert (found.why, found.lasts) == (f"Kueue has deactivated it and does not queue it again: {why}", True)
    assert found.fix == (
        "kubectl patch workloads.v1beta2.kueue.x-k8s.io -n ai job-train --type merge "
        """-p '{"spec":{"active":true}}'    # as an administrator, once the cause is fixed"""
    )


def test_a_newer_workload_of_the_job_counts_and_one_that_has_finished_does_not() -> None:
    kind, old = make.queued("main", "of before")
    old["metadata"] |= {"name": "old", "creationTimestamp": "2026-11-22T10:00:00Z"}
    _, done = make.queued("main", "", reserved="True")
    done["metadata"] |= {"name": "done", "creationTimestamp": "2026-11-22T12:00:00Z"}
    done["status"]["conditions"] += conditions(Finished=("True", "Succeeded", ""))
    now = conditions(QuotaReserved="of now")
    _, new = make.queued("main", "")
    new["metadata"] |= {"name": "new", "creationTimestamp": "2026-11-22T11:00:00Z"}
    new["status"]["conditions"] = now
    cluster = make.cluster(make.job(suspend=True), (kind, old), (kind, done), (kind, new))
    assert make.told(report(cluster, "ai", "train"))[0] == f"waits: {WAITS}of now"


@pytest.mark.parametrize(
    ("runs", "why"),
    [(True, "Kueue has not put it into its queue main yet"), (False, "Kueue does not run")],
)
def test_a_job_that_names_a_queue_and_has_no_workload(runs: bool, why: str) -> None:
    kind, job = make.job(suspend=True)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "main"}
    labels = {"app.kubernetes.io/name": "kueue", "control-plane": "controller-manager"}
    manager = make.pod("kueue", labels=labels, namespace="kueue-system", ready=runs)
    assert report(make.cluster((kind, job), manager), "ai", "train").findings[0].why == why


def test_a_job_that_kueue_cannot_queue_reports_the_event() -> None:
    job = make.job(suspend=True)
    refused = make.event(job, "ErrWorkloadCompose", "invalid podset: topology")
    assert report(make.cluster(job, refused), "ai", "train").findings[0].why == "invalid podset: topology"


def test_a_refusal_of_pods_is_over_once_the_job_is_suspended() -> None:
    job = make.job(suspend=True)
    before = make.event(job, "FailedCreate", "exceeded quota")
    found = report(make.cluster(job, before, make.queued("main", "no room")), "ai", "train").findings
    assert [each.why for each in found] == [f"{WAITS}no room"]


def test_the_job_of_a_running_appwrapper_may_be_suspended() -> None:
    kind, inner = make.pytorch_job(owner="train", Suspended="True")
    found = report(make.cluster(make.app_wrapper(phase="Running"), (kind, inner)), "ai", "train")
    assert found.phase == "Pending"
    assert "it is suspended" in [each.why for each in found.findings]


def test_a_queue_that_does_not_exist_is_reported_with_those_that_do() -> None:
    queue = (LOCAL_QUEUE, {"metadata": {"name": "default-queue", "namespace": "ai"}})
    found = held(conditions(QuotaReserved="LocalQueue main doesn't exist"), queue)
    assert found.why == f"{WAITS}LocalQueue main doesn't exist; namespace ai has: default-queue"
    assert found.lasts


def test_a_pod_that_asks_for_more_devices_than_any_node_has_never_fits() -> None:
    kind, queued = make.queued("main", UNUSED)
    large = {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "9"}}}]}
    queued["spec"]["podSets"] = [{"name": "main", "count": 1, "template": {"spec": large}}]
    job, node = make.job(suspend=True), make.node("a", gpu=8)
    quota, size = report(make.cluster(job, (kind, queued), node), "ai", "train").findings
    assert (quota.lasts, size.lasts) == (False, True)
    assert size.why == "each pod asks for 9 nvidia.com/gpu, and no node that it may use holds more than 8"
    assert len(report(make.cluster(job, (kind, queued), make.node("a", gpu=16)), "ai", "train").findings) == 1
    groups = (CONFIG_MAP, {"metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"}, "data": {
        "status": '{"nodeGroups": [{"name": "aks-large-1-vmss"}, {"name": "a"}]}'}})  # fmt: skip
    size = report(make.cluster(job, (kind, queued), node, groups), "ai", "train").findings[-1]
    assert (size.lasts, size.why.partition("; ")[2]) == (False, "pools without nodes may have larger ones")


def test_gated_pods_are_reported_with_kueues_reason_or_the_name_of_the_gate() -> None:
    pods = [make.pod(name, owner="train") for name in ("one", "two")]
    for (_, pod), gate in zip(pods, ("kueue.x-k8s.io/admission", "example.com/license"), strict=True):
        pod["spec"]["schedulingGates"] = [{"name": gate}]
    queued = make.queued("main", "no room", owner="ai/one")
    assert make.told(report(make.cluster(make.job(), *pods, queued), "ai", "train"))[::2] == [
        f"waits: {WAITS}no room",
        "waits: pod two has scheduling gate example.com/license: not scheduled before its controller removes it",
    ]


def test_kinds_are_read_from_the_version_that_the_chart_serves() -> None:
    assert QUEUED.api_version == CLUSTER_QUEUE.api_version == "kueue.x-k8s.io/v1beta2"
