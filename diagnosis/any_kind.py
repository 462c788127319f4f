"""Phase and cause of workloads of any kind, by what most controllers write to a status.

Known are conditions (Kubernetes API conventions, "Typical status properties"), a phase or a state in one word, as of
Argo's Workflow, and the counts of a DaemonSet. JobSet 0.10, LeaderWorkerSet 0.7 and Trainer 2.1 have conditions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from diagnosis.cluster import Object
from diagnosis.finding import Finding, joined, one_line

_DONE = re.compile(r"complete|succeeded|finished|success", re.IGNORECASE)
_BAD = re.compile(r"fail|error|degraded|stalled|invalid|unhealthy", re.IGNORECASE)
_READY = ("Available", "Ready", "Running")
"""Conditions of what runs; a Deployment and a LeaderWorkerSet have the first."""


def phase(workload: Object) -> tuple[str, str]:
    """Returns the phase and the message: a failure first, then the end, then whether it runs."""
    status = workload["status"]
    if (wanted := status.get("desiredNumberScheduled")) is not None:
        ready = status.get("numberReady", 0)
        return ("Available", "") if ready >= wanted else ("Pending", f"{ready} of {wanted} pods are ready")
    true = [each for each in status.get("conditions", []) if each["status"] == "True"]
    words = [each for each in (status.get("phase"), status.get("state")) if isinstance(each, str) and each]
    for found, pattern in (("Failed", _BAD), ("Succeeded", _DONE)):
        for each in true:
            if pattern.match(each["type"]) and not each["type"].startswith("FailureTarget"):
                return found, _said(each)
        if any(map(pattern.search, words)):
            return found, one_line(str(status.get("message") or ""))
    runs = status.get("active") or any(each["type"] in _READY for each in true) or "running" in map(str.lower, words)
    return ("Running" if runs else "Pending"), ""


def stated(workload: Object, look: str) -> Iterator[Finding]:
    """Yields what its conditions have against it."""
    for each in workload["status"].get("conditions", []):
        bad, true = bool(_BAD.search(each["type"])), each["status"] == "True"
        if each.get("message") and bad == true and (bad or not _DONE.match(each["type"])):
            yield Finding(one_line(f"{each['type']} is {each['status']}: {_said(each)}"), look)


def _said(entry: Object) -> str:
    return one_line(joined(entry.get("reason"), entry.get("message")))
