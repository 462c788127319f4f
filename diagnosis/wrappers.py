"""Reports what an AppWrapper waits for and until when, its retries, and why it failed.

Phases, conditions and consequences are those of AppWrapper 1.2.1 (project-codeflare/appwrapper,
internal/controller/appwrapper/appwrapper_controller.go, Reconcile; api/v1beta2/appwrapper_types.go). Periods come from
the AppWrapper's annotations, or else from the controller's ConfigMap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from config.data.scheduling import WRAPPER_ANNOTATION, WRAPPER_CONFIG, WRAPPER_NAMESPACE
from diagnosis.cluster import POD, Cluster, labelled, where
from diagnosis.finding import Finding, clock, joined, later, one_line
from k8s.objects import Object, condition, holds

WRAPPER_LABEL = "workload.codeflare.dev/appwrapper"
_PERIODS = {
    "admissionGracePeriodDuration": "admissionGracePeriod",
    "warmupGracePeriodDuration": "warmupGracePeriod",
    "failureGracePeriodDuration": "failureGracePeriod",
    "retryPausePeriodDuration": "resetPause",
    "forcefulDeletionGracePeriodDuration": "deletionGracePeriod",
}
"""Annotations, each with the key of its default in the controller's configuration (pkg/config/config.go)."""
_NO_RETRY = "AutopilotNoExecute"
_GOING = ("Suspending", "Terminating")
_ERRORED = "ComponentCreationErrored"
_UNKNOWN_KIND = "no matches for kind"
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)")


def wrapped_pods(cluster: Cluster, wrapper: Object) -> list[Object]:
    """Returns the AppWrapper's pods, including pods of a deleted job, because the AppWrapper also waits for these."""
    metadata = wrapper["metadata"]
    pods = cluster.all(POD, metadata["namespace"])
    return [pod for pod in pods if labelled(pod, {WRAPPER_LABEL: metadata["name"]})]


def holding(cluster: Cluster, wrapper: Object) -> Iterator[Finding]:
    phase, look = wrapper["status"].get("phase"), f"kubectl describe appwrapper {where(wrapper)}"
    if phase == "Running" and holds(wrapper, "Unhealthy"):
        until = _until(cluster, wrapper, "Unhealthy", "failureGracePeriodDuration")
        why = f"the job may replace its failed pods{until}, then AppWrapper restarts it"
        yield Finding(f"{_cause(wrapper)}: {why} ({retries(cluster, wrapper)})", look)
    elif phase == "Running" and condition(wrapper, "PodsReady").get("status") == "False":
        period, what = _grace_period(cluster, wrapper)
        until = _until(cluster, wrapper, "ResourcesDeployed", period)
        why = f"AppWrapper waits for its pods to {what}{until} ({period}), then restarts it"
        yield Finding(f"{why} ({retries(cluster, wrapper)})", look, passing=True)
    elif phase == "Resuming" and (failed := _not_created(wrapper)):
        until = _until(cluster, wrapper, "ResourcesDeployed", "admissionGracePeriodDuration")
        why = f"{failed}; AppWrapper retries{until} (admissionGracePeriodDuration)"
        yield Finding(f"{why}, then restarts it ({retries(cluster, wrapper)})", look)
    elif phase == "Resetting":
        yield Finding(f"{_resetting(cluster, wrapper)} ({retries(cluster, wrapper)})", look)
    elif phase in _GOING:
        yield _going(cluster, wrapper, look)


def _not_created(wrapper: Object) -> str:
    """Returns the kinds that the API server rejected, and why the previous try failed.

    The condition Unhealthy keeps the previous error. Only the controller's log has the error of the current try.
    """
    failed = [
        part for part in _parts(wrapper) if any(each.get("reason") == _ERRORED for each in part.get("conditions", []))
    ]
    kinds = " and ".join(str(part.get("kind")) for part in failed)
    last = f"its last try ended with {_cause(wrapper)}" if holds(wrapper, "Unhealthy") else ""
    return joined(f"the API server rejected {kinds}" if kinds else "", last, by=", and ")


def _going(cluster: Cluster, wrapper: Object, look: str) -> Finding:
    """Returns the progress of the deletion. A deletion never ends if the API server does not know the kind of a
    resource (resource_management.go, deleteComponents: only NotFound counts as deleted).
    """
    deleted = wrapper["metadata"].get("deletionTimestamp", "")
    doing = f"has been deleting its resources since {clock(deleted)}" if deleted else "is deleting its resources"
    why = f"AppWrapper {doing}{_forced(cluster, wrapper)}"
    if not holds(wrapper, "Unhealthy"):
        return Finding(why, look)
    if deleted and _UNKNOWN_KIND in _cause(wrapper):
        release = (
            f"""kubectl patch appwrapper {where(wrapper)} --type merge -p '{{"metadata":{{"finalizers":null}}}}'"""
        )
        hint = "or install the CRD; without it, no object of that kind exists"
        return Finding(f"{why}, and cannot finish: {_cause(wrapper)}", f"{release}    # {hint}", lasts=True)
    return Finding(f"{why}, because of {_cause(wrapper)}", look)


def retries(cluster: Cluster, wrapper: Object) -> str:
    limit = wrapper["metadata"].get("annotations", {}).get(f"{WRAPPER_ANNOTATION}/retryLimit")
    limit = _configured(cluster).get("retryLimit") if limit is None else limit
    most = f" of {limit}" if limit is not None else ""
    return f"{_used(wrapper)}{most} retries used"


def restarted(cluster: Cluster, wrapper: Object) -> Iterator[str]:
    """Yields the number of restarts and the last cause, which is only in the AppWrapper's events."""
    if _used(wrapper) and wrapper["status"].get("phase") == "Running":
        messages = [event["message"] for event in cluster.events(wrapper) if event.get("reason") == "Unhealthy"]
        last = f", the last retry because of {one_line(messages[-1])}" if messages else ""
        yield f"AppWrapper has restarted it: {retries(cluster, wrapper)}{last}"


def failure(cluster: Cluster, wrapper: Object) -> str:
    return f"{_cause(wrapper)} ({retries(cluster, wrapper)})"


def kept(wrapper: Object) -> Iterator[str]:
    deleting = condition(wrapper, "DeletingResources")
    if deleting.get("reason") == "DeletionPaused":
        wait = _seconds(
            wrapper["metadata"]["annotations"].get(f"{WRAPPER_ANNOTATION}/deletionOnFailureGracePeriodDuration", "")
        )
        until = f" until {clock(later(deleting['lastTransitionTime'], wait))}" if wait is not None else ""
        yield f"AppWrapper keeps its pods and its quota{until}, so that you can inspect them"


def _cause(wrapper: Object) -> str:
    unhealthy = condition(wrapper, "Unhealthy")
    return one_line(joined(unhealthy.get("reason", "Unhealthy"), unhealthy.get("message")))


def _resetting(cluster: Cluster, wrapper: Object) -> str:
    cause = _cause(wrapper)
    uncounted = ", which does not count as a retry" if cause.startswith(_NO_RETRY) else ""
    if holds(wrapper, "ResourcesDeployed"):
        done = f"AppWrapper deletes its resources{_forced(cluster, wrapper)}, then restarts it"
    else:
        until = _until(cluster, wrapper, "Unhealthy", "retryPausePeriodDuration")
        done = f"AppWrapper pauses{until}, then restarts it"
    return f"{done}, because of {cause}{uncounted}"


def _forced(cluster: Cluster, wrapper: Object) -> str:
    if not holds(wrapper, "DeletingResources"):
        return ""
    when = _until(cluster, wrapper, "DeletingResources", "forcefulDeletionGracePeriodDuration", "from")
    return f", by force{when}" if when else ""


def _grace_period(cluster: Cluster, wrapper: Object) -> tuple[str, str]:
    sets = [each for part in _parts(wrapper) for each in part.get("podSets", [])]
    if len(wrapped_pods(cluster, wrapper)) < sum(each.get("replicas", 1) for each in sets):
        return "admissionGracePeriodDuration", "exist"
    return "warmupGracePeriodDuration", "be ready"


def _until(cluster: Cluster, wrapper: Object, kind: str, period: str, word: str = "until") -> str:
    since, given = condition(wrapper, kind).get("lastTransitionTime"), wrapper["metadata"].get("annotations", {})
    wait = _seconds(given.get(f"{WRAPPER_ANNOTATION}/{period}", ""))
    if wait is None:  # malformed values count as unset
        nanoseconds = _configured(cluster).get(_PERIODS[period])
        wait = nanoseconds / 1e9 if isinstance(nanoseconds, int) else None
    return f" {word} {clock(later(since, wait))}" if since and wait is not None else ""


def _configured(cluster: Cluster) -> Object:
    read = cluster.config(WRAPPER_NAMESPACE, WRAPPER_CONFIG, "config.yaml")
    return Object(read.get("appwrapper", {}).get("faultTolerance", {}))


def _parts(wrapper: Object) -> list[Object]:
    return list(wrapper["status"].get("componentStatus", []))


def _used(wrapper: Object) -> int:
    return int(wrapper["status"].get("resettingCount", 0))


def _seconds(duration: str) -> float | None:
    if not duration or _PART.sub("", duration):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(duration))
