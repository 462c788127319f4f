"""Phase and cause of workloads of any kind, by what most controllers write to a status.

Known are conditions (Kubernetes API conventions, "Typical status properties"), a phase or a state in one word, as of
Argo's Workflow, and the counts of a DaemonSet. JobSet 0.10, LeaderWorkerSet 0.7 and Trainer 2.1 have conditions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from diagnosis.finding import Finding, joined, one_line
from k8s.objects import Object

_DONE = re.compile(r"complete|succeeded|finished|success", re.IGNORECASE)
_FAILED = re.compile(r"(fail(ed|ure)?|error)$", re.IGNORECASE)
_BAD = re.compile(r"fail|error|degraded|stalled|invalid|unhealthy", re.IGNORECASE)
_GOOD = re.compile(r"(ready|available|created|accepted|healthy|synced|valid|provisioned)$", re.IGNORECASE)
_READY = ("Available", "Ready", "Running")
"""Conditions of what runs; a Deployment and a LeaderWorkerSet have the first."""
_PARTS = ("applicationState", "jobStatus")
"""Parts of the status of a SparkApplication and of a FlinkDeployment."""


def phase(workload: Object) -> tuple[str, str]:
    """Returns the phase and the message: a failure first, then the end, then whether it runs."""
    status = workload["status"]
    if (wanted := status.get("desiredNumberScheduled")) is not None:
        ready = status.get("numberReady", 0)
        return ("Available", "") if ready >= wanted else ("Pending", f"{ready} of {wanted} pods are ready")
    conditions = status.get("conditions", [])
    parts = [each for each in (status, *map(status.get, _PARTS)) if isinstance(each, dict)]
    words = [each for part in parts for key in ("phase", "state") if isinstance(each := part.get(key), str)]
    for found, pattern in (("Failed", _FAILED), ("Succeeded", _DONE)):
        for each in conditions:
            if each["status"] == "True" and pattern.match(each["type"]):
                return found, _said(each)
            if found == "Failed" and (each["type"], each["status"]) == ("Succeeded", "False"):  # Tekton, Knative
                return found, _said(each)
        if any(map(pattern.match, words)):
            said = [str(part.get("message") or part.get("errorMessage") or "") for part in parts]
            return found, one_line(next(filter(None, said), ""))
    runs = status.get("active") or any(each["type"] in _READY and each["status"] == "True" for each in conditions)
    return ("Running" if runs or "running" in map(str.lower, words) else "Pending"), ""


def stated(workload: Object, look: str) -> Iterator[Finding]:
    """Yields what its conditions have against it."""
    for each in workload["status"].get("conditions", []):
        against = _GOOD.search(each["type"]) if each["status"] == "False" else _BAD.search(each["type"])
        if each.get("message") and against and each["status"] in ("True", "False"):
            yield Finding(one_line(f"{each['type']} is {each['status']}: {_said(each)}"), look)


def _said(entry: Object) -> str:
    return one_line(joined(entry.get("reason"), entry.get("message")))
