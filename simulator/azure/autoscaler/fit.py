"""Placement of pending pods on nodes. Pure functions.

Handles equal pods together, because a batch has thousands of pods.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from k8s.objects import Object, condition, has_ended
from k8s.quantities import value
from k8s.resources import Resources, pod_requests
from k8s.scheduling import repelling_taint, selects

_EXPENDABLE = -10
"""Pods of lower priority do not trigger a scale-up (AKS's page; --expendable-pods-priority-cutoff)."""


@dataclass
class Alike:
    """Pods with equal requests and node constraints."""

    pods: list[Object]
    requests: Resources


def is_waiting(pod: Object) -> bool:
    """Returns whether upstream treats the pod as unschedulable (cluster-autoscaler/utils/kubernetes/listers.go).

    Volcano sets another reason on schedulable pods of a pending gang (docs/design/scheduling-reason.md). So only the
    unschedulable pods of the gang trigger a scale-up.
    """
    placed = condition(pod, "PodScheduled")
    unschedulable = placed.get("status") == "False" and placed.get("reason") == "Unschedulable"
    wanted = pod["spec"].get("priority", 0) >= _EXPENDABLE and not pod["metadata"].get("deletionTimestamp")
    return unschedulable and wanted and not pod["spec"].get("nodeName")


def alike(pods: Iterable[Object]) -> list[Alike]:
    found: dict[str, Alike] = {}
    for pod in pods:
        spec = pod["spec"]
        texts = {name: str(amount) for name, amount in requests_of(pod).items()}
        key = json.dumps([texts, *map(spec.get, ("nodeSelector", "affinity", "tolerations"))], sort_keys=True)
        found.setdefault(key, Alike([], requests_of(pod))).pods.append(pod)
    return list(found.values())


def requests_of(pod: Object) -> Resources:
    return {"pods": Fraction(1)} | pod_requests(pod)


def capacity(node: Object) -> Resources:
    return {name: value(amount) for name, amount in node["status"].get("allocatable", {}).items()}


def free(node: Object, pods: Iterable[Object]) -> Resources:
    left = capacity(node)
    for pod in pods:
        if pod["spec"].get("nodeName") == node["metadata"]["name"] and not has_ended(pod):
            _take(left, requests_of(pod), 1)
    return left


def place(node: Object, left: Resources, waiting: Iterable[Alike]) -> list[Object]:
    """Returns the pods that fit. Removes these pods from `waiting`, and subtracts their requests from `left`."""
    placed: list[Object] = []
    for group in waiting:
        if group.pods and may_run(group.pods[0], node):
            times = [_times(left.get(name, Fraction(0)), each) for name, each in group.requests.items()]
            count = min(len(group.pods), *times)
            placed += group.pods[:count]
            del group.pods[:count]
            _take(left, group.requests, count)
    return placed


def may_run(pod: Object, node: Object) -> bool:
    return selects(pod, node) and repelling_taint(pod, node) is None


def why_not(pod: Object, node: Object) -> str:
    """Returns why the pod does not fit on an empty node (the scheduler's text), or an empty string."""
    if not selects(pod, node):
        return "node(s) didn't match Pod's node affinity/selector"
    if taint := repelling_taint(pod, node):
        return f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
    left = capacity(node)
    lacking = [name for name, amount in requests_of(pod).items() if amount > left.get(name, 0)]
    return f"Insufficient {lacking[0]}" if lacking else ""


def _times(left: Fraction, each: Fraction) -> int:
    return max(int(left / each), 0) if each else 10**9


def _take(left: Resources, requests: Resources, count: int) -> None:
    for name, amount in requests.items():
        left[name] = left.get(name, Fraction(0)) - amount * count
