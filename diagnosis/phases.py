"""The phase of a workload of each kind, with the message that its status has for it."""

from __future__ import annotations

from diagnosis import any_kind, ray
from diagnosis.cluster import WORKLOADS
from diagnosis.under_way import unfinished_rollout, unfinished_set
from k8s.objects import Object, condition, has_ended, is_ready

PENDING = "Pending"
RUNNING = "Running"


def phase_of(kind: str, workload: Object) -> tuple[str, str]:
    """Returns the phase and the message; `kind` is a key of `diagnosis.cluster.WORKLOADS`."""
    status = workload["status"]
    if kind in _BY_KIND:
        return _BY_KIND[kind](workload)
    if kind not in WORKLOADS:
        return any_kind.phase(workload)
    if isinstance(state := status.get("state"), dict):  # Volcano
        return state.get("phase") or PENDING, state.get("message", "")
    if state is not None:  # a RayCluster
        return (RUNNING if state == "ready" else PENDING), ""
    if "jobDeploymentStatus" in status:
        return ray.phase(status)
    if "phase" in status:  # AppWrapper
        return (status["phase"] if status["phase"] in ("Failed", "Succeeded", RUNNING) else PENDING), ""
    if why := unfinished_rollout(workload):
        return PENDING, why
    for each in status.get("conditions", []):
        if each["type"] in ("Complete", "Failed", "Available", "Succeeded") and each["status"] == "True":
            return each["type"], each.get("message") or each.get("reason") or ""
    runs = status.get("ready") or condition(workload, RUNNING).get("status") == "True"  # the training operator's
    return (RUNNING if runs else PENDING), ""


def _pod(pod: Object) -> tuple[str, str]:
    """Returns Running only for a pod that is ready, since containers of a running one may fail."""
    if has_ended(pod):
        return pod["status"]["phase"], ""
    return (RUNNING if is_ready(pod) else PENDING), ""


def _stateful_set(stateful_set: Object) -> tuple[str, str]:
    why = unfinished_set(stateful_set)
    return (PENDING, why) if why else ("Available", "")


ANY_KIND = ("trainjob", "jobset", "leaderworkerset", "cronjob", "daemonset")
"""Kinds without rules of their own, as those that WORKLOADS lacks."""
_BY_KIND = {
    "pod": _pod,
    "rayservice": ray.serves,
    "statefulset": _stateful_set,
    **dict.fromkeys(ANY_KIND, any_kind.phase),
}
