"""The phase of a workload of each kind, with the message that its status has for it.

Also how far pods are that are not ready, though nothing is known to be wrong with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diagnosis import any_kind, ray
from diagnosis.cluster import WORKLOADS, Cluster, where
from diagnosis.finding import Finding, grouped, joined, listed, one_line
from diagnosis.messages import cause, most_telling
from k8s.objects import Object, condition, has_ended, is_ready

_UNHEALTHY = "Unhealthy"
"""Event of a probe that failed."""
_NOT_KILLED = "FailedKillPod"
PENDING = "Pending"
RUNNING = "Running"


def under_way(cluster: Cluster, pods: Sequence[Object]) -> Iterator[Finding]:
    """One finding for each state, with all pods that are in it."""
    starting = (pod for pod in pods if not has_ended(pod) and not is_ready(pod))
    for state, found in grouped((_state(cluster, pod), pod) for pod in starting).items():
        why = f"{listed([_placed(pod) for pod in found], 'pod')} {'is' if len(found) == 1 else 'are'} {state}"
        yield Finding(one_line(why), f"kubectl describe pod {where(found[0])}", passing=True)


def unfinished_rollout(deployment: Object) -> str:
    """Returns why a Deployment is not done though earlier pods may be Available, as `kubectl rollout status` waits."""
    for kind, bad in (("Progressing", "False"), ("ReplicaFailure", "True")):
        if (entry := condition(deployment, kind)).get("status") == bad:
            return joined(entry.get("reason", kind), entry.get("message") if kind == "Progressing" else "")
    status = deployment["status"]
    there, new, late = (status.get(key, 0) for key in ("replicas", "updatedReplicas", "unavailableReplicas"))
    if condition(deployment, "Available").get("status") != "True" or not (late or there > new):
        return ""
    if condition(deployment, "Progressing").get("reason") == "DeploymentPaused":
        return ""
    return f"{new} of {there} replicas are of the newest version, and {late} {'is' if late == 1 else 'are'} unavailable"


def unfinished_set(stateful_set: Object) -> str:
    """Returns why a StatefulSet is not done, as `kubectl rollout status` waits; pods before a partition stay old."""
    spec, status = stateful_set["spec"], stateful_set["status"]
    wanted, ready, new = spec.get("replicas", 1), status.get("readyReplicas", 0), status.get("updatedReplicas", 0)
    if ready < wanted:
        return f"{ready} of {wanted} replicas are ready"
    strategy = spec.get("updateStrategy", {})
    rolling = strategy.get("type") != "OnDelete" and status.get("updateRevision") != status.get("currentRevision")
    to_update = wanted - strategy.get("rollingUpdate", {}).get("partition", 0)
    return f"{new} of {wanted} replicas are of the newest version" if rolling and new < to_update else ""


def _placed(pod: Object) -> str:
    node = pod["spec"].get("nodeName")
    return f"{pod['metadata']['name']}{f' on node {node}' if node else ''}"


def _state(cluster: Cluster, pod: Object) -> str:
    name = pod["spec"].get("nodeName")
    if pod["metadata"].get("deletionTimestamp"):
        held = pod["metadata"].get("finalizers")
        by = condition(pod, "TerminationTarget").get("message")  # Kueue's (pkg/controller/jobs/pod)
        failed = [event["message"] for event in cluster.events(pod) if event["reason"] == _NOT_KILLED]
        kept = f", and kept until its finalizer {' and '.join(held)} is removed" if held else ""
        return f"asked to end{f' ({by})' if by else ''}{f': {cause(failed[-1])}' if failed else kept}"
    if not name:
        return "not placed yet"
    if pod["status"].get("phase") != "Running":
        return "being started"
    told = [event for event in cluster.events(pod) if event["reason"] == _UNHEALTHY]
    return "running, and not ready yet" + (f": {cause(most_telling(told)['message'])}" if told else "")


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
