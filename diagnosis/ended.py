"""Reports on a workload that has ended: the verdicts in its logs, how its pods ended, and where to look.

A Job replaces failed pods up to its backoffLimit, with a delay of 10 seconds that doubles up to six minutes
(kubernetes.io, "Jobs", Pod backoff failure policy).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from diagnosis.cluster import owners_of, where
from diagnosis.finding import grouped, joined, listed, one_line
from diagnosis.pods import NEVER_STARTED
from diagnosis.wrappers import WRAPPER_LABEL
from k8s.objects import Object, condition, has_ended, holds

_VERDICT = "VERDICT:"
_PASSED = f"{_VERDICT} PASS"
_GOING = "being evicted or preempted"
_UNLIMITED = 2**31 - 1
"""The backoffLimit of a Job that has only a limit per index (kubernetes.io, "Jobs", Backoff limit per index)."""


def selector(kind: str, name: str, uid: str) -> str:
    """Returns the label selector of the pods of a Job, Volcano Job or AppWrapper; empty for other kinds."""
    labels = {
        "job": f"batch.kubernetes.io/controller-uid={uid}",
        "vcjob": f"volcano.sh/job-name={name}",
        "appwrapper": f"{WRAPPER_LABEL}={name}",
    }
    return labels.get(kind, "")


def verdicts(last_lines: Iterable[str]) -> list[str]:
    found = [line.strip() for line in last_lines if line.startswith(_VERDICT)]
    return sorted(found, key=lambda verdict: (verdict.startswith(_PASSED), verdict))


def remarks(pods: Iterable[Object]) -> Iterator[str]:
    for cause, names in grouped((_disruption(pod), pod["metadata"]["name"]) for pod in pods).items():
        if cause:
            yield one_line(f"{listed(names, 'pod')}: {cause}")


def disrupted(pods: Iterable[Object]) -> Iterator[str]:
    found = grouped((_target(pod), pod["metadata"]["name"]) for pod in pods if not has_ended(pod))
    for cause, names in found.items():
        if cause:
            yield one_line(f"{listed(names, 'pod')} {'is' if len(names) == 1 else 'are'} {_GOING}: {cause}")


def _disruption(pod: Object) -> str:
    status = pod["status"]
    return joined(status["reason"], status.get("message")) if status.get("reason") else _target(pod)


def _target(pod: Object) -> str:
    target = condition(pod, "DisruptionTarget")
    return joined(target.get("reason"), target.get("message")) if target.get("status") == "True" else ""


def exits(pods: Iterable[Object]) -> Iterator[str]:
    alike = grouped((end, pod["metadata"]["name"]) for pod in pods for end in _ends(pod))
    return (f"{listed(names, 'pod')}: {end}" for end, names in alike.items())


def _ends(pod: Object) -> Iterator[str]:
    status = pod["status"]
    for container in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
        ended = _end(container)
        if code := ended.get("exitCode"):
            reason = ended.get("reason")
            why = joined(reason if reason != "Error" else "", ended.get("message"))
            yield one_line(f"container {container['name']} ended with exit code {code}{f' ({why})' if why else ''}")


def log(pods: Sequence[Object]) -> str:
    """Returns the command for the log of the first failed pod, or else of the first pod; empty without pods."""
    ordered = sorted(pods, key=lambda pod: (pod["status"].get("phase") != "Failed", pod["metadata"]["name"]))
    return next((_log(pod) for pod in ordered), "")


def _log(pod: Object) -> str:
    """Returns the log command of the init container, or else the container, that failed first.

    For a pod or container that never ran, it is `kubectl describe`.
    """
    status, logs = pod["status"], f"kubectl logs {where(pod)}"
    if not status.get("containerStatuses"):
        return f"kubectl describe pod {where(pod)}"
    own = status["containerStatuses"]
    for containers in (status.get("initContainerStatuses", []), own):
        if failed := [each for each in containers if _end(each).get("exitCode")]:
            first = min(failed, key=lambda each: str(_end(each).get("finishedAt", "")))
            if _end(first).get("reason") in NEVER_STARTED:
                return f"kubectl describe pod {where(pod)}"
            only = containers is own and len(own) == 1
            return logs if only else f"{logs} -c {first['name']}"
    return logs


def _end(container: Object) -> Object:
    return container.get("state", {}).get("terminated") or {}


def job_retries(job: Object, pods: Iterable[Object]) -> str:
    """Returns how many pods of a Job have failed, and why; empty if none, or if the Job has ended."""
    failed = job["status"].get("failed", 0)
    if not failed or any(holds(job, kind) for kind in ("Complete", "Failed")):
        return ""
    why = _last_failure([pod for pod in pods if job["metadata"]["uid"] in owners_of(pod)])
    count = f"{failed} {'pod has' if failed == 1 else 'pods have'} failed{_limit(job['spec'])}"
    text = f"Job {job['metadata']['name']}: {count}"
    return one_line(f"{text}; the last one: {why}" if why else text)


def failing(job: Object) -> str:
    """Returns why a Job has failed while Kubernetes still deletes its pods (condition FailureTarget), or an empty
    string.
    """
    target = condition(job, "FailureTarget")
    if target.get("status") != "True" or holds(job, "Failed"):
        return ""
    why = joined(target.get("reason"), target.get("message"))
    return one_line(f"Job {job['metadata']['name']} has failed ({why}), and Kubernetes deletes its pods")


def _limit(spec: Object) -> str:
    if (limit := spec.get("backoffLimitPerIndex")) is not None:
        return f" (backoffLimitPerIndex {limit})"
    limit = spec.get("backoffLimit", 6)
    return "" if limit >= _UNLIMITED else f" (backoffLimit {limit})"


def _last_failure(pods: Sequence[Object]) -> str:
    failed = [pod for pod in pods if pod["status"].get("phase") == "Failed"]
    if not failed:
        return ""
    last = max(failed, key=_ended_at)
    return next(iter([*remarks([last]), *exits([last])]), "")


def _ended_at(pod: Object) -> str:
    statuses = pod["status"].get("containerStatuses", [])
    ends = [(each.get("state", {}).get("terminated") or {}).get("finishedAt") or "" for each in statuses]
    return max(ends, default="") or str(pod["metadata"].get("creationTimestamp", ""))
