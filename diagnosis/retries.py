"""Pods of Jobs that have failed, of how many, and why the last one did.

A Job makes another pod for one that failed while no more have than its backoffLimit, with pauses of 10 seconds and
twice as long each time, six minutes at most (kubernetes.io, "Jobs", Pod backoff failure policy).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from diagnosis.cluster import owners_of
from diagnosis.ended import exits, remarks
from diagnosis.finding import joined, one_line
from k8s.objects import Object, condition

_UNLIMITED = 2**31 - 1
"""Of a Job that counts by index alone (kubernetes.io, "Jobs", Backoff limit per index)."""


def job_retries(job: Object, pods: Iterable[Object]) -> str:
    """Empty for one of which no pod has failed, or for which all is over."""
    failed = job["status"].get("failed", 0)
    if not failed or any(condition(job, kind).get("status") == "True" for kind in ("Complete", "Failed")):
        return ""
    mine = [pod for pod in pods if job["metadata"]["uid"] in owners_of(pod)]
    why = _last_failure(mine)
    told = (
        f"Job {job['metadata']['name']} has had {failed} failed {'pod' if failed == 1 else 'pods'}{_most(job['spec'])}"
    )
    return one_line(f"{told}; the last one: {why}" if why else told)


def failing(job: Object) -> str:
    """Returns why a Job is about to fail while Kubernetes deletes its pods (condition FailureTarget); else empty."""
    target = condition(job, "FailureTarget")
    if target.get("status") != "True" or condition(job, "Failed").get("status") == "True":
        return ""
    why = joined(target.get("reason"), target.get("message"))
    return one_line(f"Job {job['metadata']['name']} has failed ({why}), and Kubernetes deletes its pods")


def _most(spec: Object) -> str:
    if (limit := spec.get("backoffLimitPerIndex")) is not None:
        return f", and may have {limit} of each index"
    limit = spec.get("backoffLimit", 6)
    return "" if limit >= _UNLIMITED else f", and may have {limit}"


def _last_failure(pods: Sequence[Object]) -> str:
    """Of the pod that failed last, as far as there is one still."""
    failed = [pod for pod in pods if pod["status"].get("phase") == "Failed"]
    if not failed:
        return ""
    last = max(failed, key=_ended_at)
    return next(iter([*remarks([last]), *exits([last])]), "")


def _ended_at(pod: Object) -> str:
    """RFC 3339 in UTC, which sorts as text; of one without containers, as it was made."""
    statuses = pod["status"].get("containerStatuses", [])
    ends = [(each.get("state", {}).get("terminated") or {}).get("finishedAt") or "" for each in statuses]
    return max(ends, default="") or str(pod["metadata"].get("creationTimestamp", ""))
