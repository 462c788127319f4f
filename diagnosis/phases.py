"""Reads the phase and message of a workload of any kind, and the progress of its pods.

For kinds without rules, reads common status fields: conditions (Kubernetes API conventions, "Typical status
properties"), a phase or state in one word (such as Argo's Workflow), and a DaemonSet's counts. JobSet 0.10,
LeaderWorkerSet 0.7 and Trainer 2.1 have conditions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from diagnosis import ray
from diagnosis.cluster import WORKLOADS, Cluster, where
from diagnosis.finding import Finding, grouped, joined, listed, one_line
from diagnosis.messages import cause, most_specific
from diagnosis.workload import ANY_KIND
from k8s.objects import Object, condition, has_ended, holds, is_ready

_DONE = re.compile(r"complete|succeeded|finished|success", re.IGNORECASE)
_FAILED = re.compile(r"(fail(ed|ure)?|error)$", re.IGNORECASE)
_BAD = re.compile(r"fail|error|degraded|stalled|invalid|unhealthy", re.IGNORECASE)
_GOOD = re.compile(r"(ready|available|created|accepted|healthy|synced|valid|provisioned)$", re.IGNORECASE)
_READY = ("Available", "Ready", "Running")
_PARTS = ("applicationState", "jobStatus")
"""Fields with the state of SparkApplication and FlinkDeployment."""
_UNHEALTHY = "Unhealthy"
_NOT_KILLED = "FailedKillPod"
PENDING = "Pending"
RUNNING = "Running"


def phase_of_any_kind(workload: Object) -> tuple[str, str]:
    """Returns phase and message. Of several phases, the first counts: a failure, completion, running."""
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
                return found, _reason(each)
            if found == "Failed" and (each["type"], each["status"]) == ("Succeeded", "False"):  # Tekton, Knative
                return found, _reason(each)
        if any(map(pattern.match, words)):
            messages = [str(part.get("message") or part.get("errorMessage") or "") for part in parts]
            return found, one_line(next(filter(None, messages), ""))
    runs = status.get("active") or any(each["type"] in _READY and each["status"] == "True" for each in conditions)
    return ("Running" if runs or "running" in map(str.lower, words) else "Pending"), ""


def stated(workload: Object, look: str) -> Iterator[Finding]:
    for each in workload["status"].get("conditions", []):
        against = _GOOD.search(each["type"]) if each["status"] == "False" else _BAD.search(each["type"])
        if each.get("message") and against and each["status"] in ("True", "False"):
            yield Finding(one_line(f"{each['type']} is {each['status']}: {_reason(each)}"), look)


def _reason(entry: Object) -> str:
    return one_line(joined(entry.get("reason"), entry.get("message")))


def pods_under_way(cluster: Cluster, pods: Sequence[Object]) -> Iterator[Finding]:
    starting = (pod for pod in pods if not has_ended(pod) and not is_ready(pod))
    for state, found in grouped((_state(cluster, pod), pod) for pod in starting).items():
        why = f"{listed([_placed(pod) for pod in found], 'pod')} {'is' if len(found) == 1 else 'are'} {state}"
        yield Finding(one_line(why), f"kubectl describe pod {where(found[0])}", passing=True)


def unfinished_rollout(deployment: Object) -> str:
    """Returns why a Deployment's rollout is unfinished, as in `kubectl rollout status`; empty if it is done."""
    for kind, bad in (("Progressing", "False"), ("ReplicaFailure", "True")):
        if (entry := condition(deployment, kind)).get("status") == bad:
            return joined(entry.get("reason", kind), entry.get("message") if kind == "Progressing" else "")
    status = deployment["status"]
    total, new, late = (status.get(key, 0) for key in ("replicas", "updatedReplicas", "unavailableReplicas"))
    if not holds(deployment, "Available") or not (late or total > new):
        return ""
    if condition(deployment, "Progressing").get("reason") == "DeploymentPaused":
        return ""
    return f"{new} of {total} replicas have the newest version, and {late} {'is' if late == 1 else 'are'} unavailable"


def unfinished_set(stateful_set: Object) -> str:
    """Returns why a StatefulSet's rollout is unfinished, as in `kubectl rollout status`; empty if it is done.

    Pods with an ordinal below the partition keep the old version.
    """
    spec, status = stateful_set["spec"], stateful_set["status"]
    wanted, ready, new = spec.get("replicas", 1), status.get("readyReplicas", 0), status.get("updatedReplicas", 0)
    if ready < wanted:
        return f"{ready} of {wanted} replicas are ready"
    strategy = spec.get("updateStrategy", {})
    rolling = strategy.get("type") != "OnDelete" and status.get("updateRevision") != status.get("currentRevision")
    to_update = wanted - strategy.get("rollingUpdate", {}).get("partition", 0)
    return f"{new} of {wanted} replicas have the newest version" if rolling and new < to_update else ""


def _placed(pod: Object) -> str:
    node = pod["spec"].get("nodeName")
    return f"{pod['metadata']['name']}{f' on node {node}' if node else ''}"


def _state(cluster: Cluster, pod: Object) -> str:
    name = pod["spec"].get("nodeName")
    if pod["metadata"].get("deletionTimestamp"):
        held = pod["metadata"].get("finalizers")
        by = condition(pod, "TerminationTarget").get("message")  # Kueue sets it (pkg/controller/jobs/pod)
        failed = [event["message"] for event in cluster.events(pod) if event["reason"] == _NOT_KILLED]
        kept = f", and kept until its finalizer {' and '.join(held)} is removed" if held else ""
        return f"terminating{f' ({by})' if by else ''}{f': {cause(failed[-1])}' if failed else kept}"
    if not name:
        return "not scheduled yet"
    if pod["status"].get("phase") != "Running":
        return "starting"
    failed_probes = [event for event in cluster.events(pod) if event["reason"] == _UNHEALTHY]
    return "running, but not ready yet" + (
        f": {cause(most_specific(failed_probes)['message'])}" if failed_probes else ""
    )


def phase_of(kind: str, workload: Object) -> tuple[str, str]:
    return _BY_KIND.get(kind, _by_conditions if kind in WORKLOADS else phase_of_any_kind)(workload)


def _pod(pod: Object) -> tuple[str, str]:
    """Returns Running only if the pod is ready, because containers of a running pod may fail."""
    if has_ended(pod):
        return pod["status"]["phase"], ""
    return (RUNNING if is_ready(pod) else PENDING), ""


def _volcano_job(job: Object) -> tuple[str, str]:
    state = job["status"].get("state", {})
    return state.get("phase") or PENDING, state.get("message", "")


def _ray_cluster(cluster: Object) -> tuple[str, str]:
    state = cluster["status"].get("state")
    return (RUNNING if state == "ready" else PENDING), "" if state is not None else unfinished_rollout(cluster)


def _ray_job(job: Object) -> tuple[str, str]:
    return ray.phase(job["status"]) if "jobDeploymentStatus" in job["status"] else (PENDING, "")


def _app_wrapper(wrapper: Object) -> tuple[str, str]:
    phase = wrapper["status"].get("phase")
    return (phase if phase in ("Failed", "Succeeded", RUNNING) else PENDING), ""


def _stateful_set(stateful_set: Object) -> tuple[str, str]:
    why = unfinished_set(stateful_set)
    return (PENDING, why) if why else ("Available", "")


def _deployment(deployment: Object) -> tuple[str, str]:
    why = unfinished_rollout(deployment)
    return (PENDING, why) if why else _by_conditions(deployment)


def _by_conditions(job: Object) -> tuple[str, str]:
    for each in job["status"].get("conditions", []):
        if each["type"] in ("Complete", "Failed", "Available", "Succeeded") and each["status"] == "True":
            return each["type"], each.get("message") or each.get("reason") or ""
    return (RUNNING if job["status"].get("ready") or holds(job, RUNNING) else PENDING), ""


_BY_KIND = {
    "pod": _pod,
    "vcjob": _volcano_job,
    "appwrapper": _app_wrapper,
    "rayjob": _ray_job,
    "raycluster": _ray_cluster,
    "rayservice": ray.serves,
    "statefulset": _stateful_set,
    "deployment": _deployment,
    **dict.fromkeys(ANY_KIND, phase_of_any_kind),
}
