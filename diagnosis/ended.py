"""What there is to know of a workload that has ended: its verdicts, what became of its pods, and where to look."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from diagnosis.cluster import Object, condition
from diagnosis.finding import listed, one_line

_VERDICT = "VERDICT:"
_NOT_STARTED = ("StartError", "ContainerCannotRun")
"""Reasons of containers that have no log: containerd's and CRI-O's."""
_PASSED = f"{_VERDICT} PASS"


def selector(kind: str, name: str, uid: str) -> str:
    """Of the pods of a job, whose kind is as kubectl calls it; empty for what is no job."""
    return {"job": f"batch.kubernetes.io/controller-uid={uid}", "vcjob": f"volcano.sh/job-name={name}"}.get(kind, "")


def verdicts(last_lines: Iterable[str]) -> list[str]:
    """Those of the last lines of logs in which a test judges, the failed ones first."""
    found = [line.strip() for line in last_lines if line.startswith(_VERDICT)]
    return sorted(found, key=lambda verdict: (verdict.startswith(_PASSED), verdict))


def remarks(pods: Iterable[Object]) -> Iterator[str]:
    """Yields what is reported of pods as a whole: that they were evicted, preempted, or refused by a node."""
    alike: dict[str, list[str]] = {}
    for pod in pods:
        status, disrupted = pod.get("status", {}), condition(pod, "DisruptionTarget")
        said = status if status.get("reason") else disrupted if disrupted.get("status") == "True" else {}
        if words := ": ".join(filter(None, [said.get("reason"), said.get("message")])):
            alike.setdefault(words, []).append(pod["metadata"]["name"])
    for said, names in alike.items():
        yield one_line(f"{listed(names, 'pod')}: {said}")


def exits(pods: Iterable[Object]) -> Iterator[str]:
    """With what containers ended that failed, alike ones once."""
    alike: dict[str, list[str]] = {}
    for pod in pods:
        status = pod.get("status", {})
        for container in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
            ended = _end(container)
            if code := ended.get("exitCode"):
                reason = ended.get("reason", "Error")
                why = ": ".join(filter(None, [reason if reason != "Error" else "", ended.get("message")]))
                said = f"container {container['name']} ended with exit code {code}{f' ({why})' if why else ''}"
                said = one_line(said)
                alike.setdefault(said, []).append(pod["metadata"]["name"])
    return (f"{listed(names, 'pod')}: {said}" for said, names in alike.items())


def log(pods: Sequence[Object]) -> str:
    """The command that shows the log of the first pod that failed, else of the first one; empty without any."""
    ordered = sorted(pods, key=lambda pod: (pod.get("status", {}).get("phase") != "Failed", pod["metadata"]["name"]))
    return next((_log(pod) for pod in ordered), "")


def _log(pod: Object) -> str:
    """Of the init container that failed, or the first of several containers to fail. A pod that never ran has none."""
    where, status = f"-n {pod['metadata']['namespace']} {pod['metadata']['name']}", pod.get("status", {})
    if not status.get("containerStatuses"):
        return f"kubectl describe pod {where}"
    own = status["containerStatuses"]
    for containers in (status.get("initContainerStatuses", []), own):
        if failed := [each for each in containers if _end(each).get("exitCode")]:
            first = min(failed, key=lambda each: str(_end(each).get("finishedAt", "")))
            if _end(first).get("reason") in _NOT_STARTED:
                return f"kubectl describe pod {where}"
            only = containers is own and len(own) == 1
            return f"kubectl logs {where}" if only else f"kubectl logs {where} -c {first['name']}"
    return f"kubectl logs {where}"


def _end(container: Object) -> Object:
    """How it ended; empty while it has not."""
    return (container.get("state") or {}).get("terminated") or {}
