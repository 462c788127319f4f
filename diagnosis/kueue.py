"""Reports why Kueue holds back a job, until when, and whether waiting helps.

Sources, of Kueue 0.19.2: conditions and reasons of a Workload (apis/kueue/v1beta2/workload_types.go), the code that
sets them (pkg/controller/core/workload_controller.go), and messages of Kueue's scheduler
(pkg/scheduler/flavorassigner/flavorassigner.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from config.data.scheduling import GPU_RESOURCE, QUEUE_LABEL
from config.rules.teams import QUEUE_SUFFIX, SLACK
from diagnosis.autoscaler import may_add_pool
from diagnosis.cluster import KUEUE_BEFORE, NODE, QUEUED, Cluster, Kind, where
from diagnosis.devices import expected
from diagnosis.finding import Finding, clock, joined, one_line
from k8s import quantities
from k8s.objects import Object, condition, holds
from k8s.resources import allocatable, device_requests
from k8s.scheduling import selects

CLUSTER_QUEUE = Kind("kueue.x-k8s.io/v1beta2", "ClusterQueue", "clusterqueues", KUEUE_BEFORE)
LOCAL_QUEUE = Kind("kueue.x-k8s.io/v1beta2", "LocalQueue", "localqueues", KUEUE_BEFORE)
_MANAGER = {"app.kubernetes.io/name": "kueue", "control-plane": "controller-manager"}
_GROUP_LABEL = "kueue.x-k8s.io/pod-group-name"
"""Label of a grouped pod: the name of the group's Workload, which a StatefulSet may own (pkg/controller/jobs)."""
_REFUSED = ("ErrWorkloadCompose", "JobNestingTooDeep", "WorkloadNameConflict")
"""Reasons of events if Kueue cannot create a job's Workload (pkg/controller/jobframework/events.go, jobs/pod)."""
_BARRED = ("QueueStopped", "Inadmissible")
"""Suffixes of reasons of the condition Requeued: Kueue requeues such a job only after a change of its queue or spec."""
_DEACTIVATED = "Deactivated"
_LASTING_REASONS = ("ExceedsMaxQuota", "NoMatchingFlavor", "Misconfigured", "Suspended")
"""Reasons of the condition QuotaReserved that do not pass with time. Without the feature gate
UnadmittedWorkloadsObservability, only the condition's message shows them.
"""
_LASTING = re.compile(
    r"LocalQueue \S+ (doesn't exist|is (terminating or missing|stopped|inactive))"
    r"|ClusterQueue \S* (doesn't exist|not found|is (terminating or missing|stopped))"
    r"|namespace doesn't match ClusterQueue selector|resources validation failed|LimitRange"
)
_POD_SET = re.compile(r"(?:^|; )couldn't assign flavors to pod set \S+: ")
_TOO_MUCH = re.compile(
    r"insufficient quota for (?P<resource>\S+) in flavor (?P<flavor>[^\s,]+), previously considered podsets requests "
    r"\((?P<before>\S+)\) \+ current podset request \((?P<asked>\S+)\) > maximum capacity \((?P<most>\S+)\)"
)
_NEVER = re.compile(
    r"insufficient quota for \S+ in flavor (?P<more>[^\s,]+),? [^>]*> maximum capacity"
    r"|untolerated taint \{[^}]*\} in flavor (?P<taint>[^\s,]+)"
    r"|flavor (?P<other>[^\s,]+) (?:doesn't match node affinity|not found)"
    r"|resource (?P<resource>\S+) unavailable in ClusterQueue"
    r"|> (?P<size>maximum capacity)"
)
_AGAIN = re.compile(r"insufficient unused quota for \S+ in flavor ([^\s,]+)")
_NO_QUEUE = re.compile(r"LocalQueue \S+ (doesn't exist|is terminating or missing)")
_INACTIVE = re.compile(r"ClusterQueue (\S+) is inactive")
_PREEMPTOR = re.compile(r"preemptor path: ([^;\s]+)")
_UID = re.compile(r"\(UID: ([^,)]+)")


def held(cluster: Cluster, job: Object) -> list[Finding]:
    metadata = job["metadata"]
    group = metadata.get("labels", {}).get(_GROUP_LABEL)
    found = cluster.owned(QUEUED, metadata["namespace"], [metadata["uid"]])
    found = found or [each for each in cluster.all(QUEUED, metadata["namespace"]) if each["metadata"]["name"] == group]
    found = [each for each in found if not holds(each, "Finished")] or found
    if found:
        newest = max(found, key=lambda each: each["metadata"].get("creationTimestamp") or "")
        look = f"kubectl describe {_resource(newest)} {where(newest)}"
        return [*_held(cluster, newest, look), *_too_large(cluster, newest, look)]
    if refused := [event["message"] for event in cluster.events(job) if event["reason"] in _REFUSED]:
        return [Finding(one_line(refused[-1]), f"kubectl get events -n {metadata['namespace']}")]
    queue = metadata.get("labels", {}).get(QUEUE_LABEL)
    if not queue:
        return []
    if not cluster.runs(_MANAGER):
        return [Finding("Kueue does not run", "kubectl get pods -A --selector app.kubernetes.io/name=kueue")]
    return [Finding(f"Kueue has not added it to its queue {queue} yet", passing=True)]


def is_admitted(cluster: Cluster, job: Object) -> bool:
    found = cluster.owned(QUEUED, job["metadata"]["namespace"], [job["metadata"]["uid"]])
    return any(holds(each, "Admitted") for each in found)


def _resource(queued: Object) -> str:
    return replace(QUEUED, api_version=queued.get("apiVersion") or QUEUED.api_version).resource


def _held(cluster: Cluster, queued: Object, look: str) -> Iterator[Finding]:
    queue = f"its queue {queued['spec'].get('queueName', '')}"
    finished, evicted, quota = (condition(queued, kind) for kind in ("Finished", "Evicted", "QuotaReserved"))
    if queued["spec"].get("active") is False:
        why = _message(evicted) or _message(condition(queued, "DeactivationTarget")) or _message(quota)
        patch = f"""kubectl patch {_resource(queued)} {where(queued)} --type merge -p '{{"spec":{{"active":true}}}}'"""
        why = joined(why, *_failed_checks(queued, why), by="; ") or "spec.active is false"
        why = f"Kueue has deactivated it and does not queue it again: {why}"
        yield Finding(one_line(why), f"{patch}    # as an administrator, once the cause is fixed", lasts=True)
    elif finished.get("status") == "True":
        why = f"Kueue does not start it, since its Workload has finished ({finished.get('reason', '')}): "
        why += _message(finished)
        yield Finding(one_line(why), look, lasts=True)
    elif quota.get("status") == "True":
        yield from _unchecked(queued, queue, look)
    elif not quota and not evicted:
        yield Finding(f"it waits for its turn in {queue}", look, passing=True)
    else:
        yield _waiting(cluster, queued, queue, look)


def _too_large(cluster: Cluster, queued: Object, look: str) -> Iterator[Finding]:
    """Yields a finding if no node that a pod may use has all its devices. A larger quota does not help."""
    for pod in (pod_set["template"] for pod_set in queued["spec"].get("podSets", [])):
        nodes = [node for node in cluster.all(NODE) if selects(pod, node)]
        for resource, count in device_requests(pod).items():
            sizes = [max(allocatable(node, resource), expected(cluster, node, resource)) for node in nodes]
            most = max(sizes, default=0)
            if 0 < most < count:
                why = f"each pod requests {count} {resource}, and no node that it may use has more than {most}"
                grows = may_add_pool(cluster, pod)
                why += "; pools without nodes may have larger nodes" if grows else ""
                fix = f"{look}    # request at most {most} in each pod, and more pods"
                yield Finding(why, fix, lasts=not grows)


def _waiting(cluster: Cluster, queued: Object, queue: str, look: str) -> Finding:
    quota, evicted, before = condition(queued, "QuotaReserved"), condition(queued, "Evicted"), _eviction(queued)
    now, lasts = _current(cluster, quota, queued["metadata"]["namespace"])
    large, never = _never_fits(_message(quota))
    less = _lends_less(cluster, _message(quota)) if GPU_RESOURCE in large else ""
    unsure = GPU_RESOURCE in large and not cluster.is_complete
    state = queued["status"].get("requeueState", {})
    requeue = f" (requeue {state['count']})" if state.get("count") else ""
    if less:
        waits = f"it has no quota in {queue} while {less}: {never}"
    elif unsure:
        waits = f"it does not fit in {queue}: {never} now; the slack queue lends fewer GPUs while nodes are bad"
    elif never:
        waits = f"it never fits in {queue}: {never}"
    elif state.get("requeueAt"):
        waits = f"it is queued again in {queue} at {clock(state['requeueAt'])}{requeue}"
    elif before and now in ("", _message(evicted)):
        waits = f"it waits in {queue}{requeue}"
    else:
        waits = f"it has no quota in {queue}: {now}"
    again = condition(queued, "Requeued")
    barred = again.get("status") == "False" and str(again.get("reason", "")).endswith(_BARRED)
    others = " and ".join(sorted(large - {GPU_RESOURCE}))
    setting = f"teams.<team>.gpus{f'; each GPU has a share of {others}' if others else ''}"
    hint = f"    # request less{others and f' {others}'}, or raise the quota ({setting})" if large else ""
    lasts = not (less or unsure) and (bool(never) or lasts or barred)
    return Finding(one_line(joined(before, waits, by="; ")), look if less else f"{look}{hint}", lasts=lasts)


def _lends_less(cluster: Cluster, message: str) -> str:
    """Returns how many GPUs the slack queue lends, if the job would fit with the queue's full quota; otherwise empty.

    The queue lends fewer GPUs while nodes are bad (docker/node-health/slack_queue.py). The maximum in Kueue's message
    excludes GPUs that are not lent.
    """
    sizes = [found.groupdict() for found in _TOO_MUCH.finditer(message) if found["resource"] == GPU_RESOURCE]
    sums = ({name: quantities.count(size[name]) for name in ("before", "asked", "most")} for size in sizes)
    lacking = min((size["before"] + size["asked"] - size["most"] for size in sums), default=0)
    queues = [each for each in cluster.all(CLUSTER_QUEUE) if each["metadata"]["name"] == f"{SLACK}{QUEUE_SUFFIX}"]
    groups = [group for queue in queues for group in queue["spec"].get("resourceGroups", [])]
    flavors = [flavor for group in groups for flavor in group.get("flavors", [])]
    for each in (each for flavor in flavors for each in flavor.get("resources", []) if each["name"] == GPU_RESOURCE):
        quota = each.get("nominalQuota")
        lent, quota = quantities.count(each.get("lendingLimit", quota)), quantities.count(quota)
        if lent < quota and lacking <= quota - lent:
            return f"the slack queue lends {lent} of {quota} GPUs, since nodes are bad or offer fewer GPUs"
    return ""


def _message(entry: Object) -> str:
    return str(entry.get("message") or entry.get("reason") or "")


def _unchecked(queued: Object, queue: str, look: str) -> Iterator[Finding]:
    if before := _eviction(queued):
        yield Finding(one_line(f"{before}; its pods are being deleted"), look, passing=True)
        return
    for check in queued["status"].get("admissionChecks", []):
        if (state := check.get("state")) != "Ready":
            message = f": {check['message']}" if check.get("message") else ""
            why = f"it has quota in {queue}, and its admission check {check.get('name')} is in state {state}{message}"
            yield Finding(one_line(why), look, lasts=state == "Rejected")
    admitted = condition(queued, "Admitted")
    if admitted.get("status") == "True":
        since = f" at {clock(admitted['lastTransitionTime'])}" if admitted.get("lastTransitionTime") else ""
        yield Finding(f"Kueue has admitted it{since}, and its job is still suspended", look)
    if admitted.get("reason") == "PendingDelayedTopologyRequests":
        yield Finding(one_line(f"it has quota in {queue}: {_message(admitted)}"), look, passing=True)


def _eviction(queued: Object) -> str:
    evicted, preempted = condition(queued, "Evicted"), condition(queued, "Preempted")
    reason, message = evicted.get("reason", ""), _message(evicted)
    if evicted.get("status") != "True":
        return ""
    if reason == "Preempted":
        by = _PREEMPTOR.search(message) or _UID.search(message)
        for_whom = f" for a workload of {by[1]}" if by and "path" in by[0] else f" for workload {by[1]}" if by else ""
        kind = f" ({preempted['reason']})" if preempted.get("reason") else ""
        return f"it ran, and Kueue preempted it{kind}{for_whom}"
    if reason == "PodsReadyTimeout":
        return f"it had quota, but its pods were not ready in time ({message})"
    if reason.startswith(_DEACTIVATED):
        return f"it was deactivated before ({message})"
    return f"Kueue evicted it ({reason}: {'; '.join([message, *_failed_checks(queued, message)])})"


def _failed_checks(queued: Object, known: str) -> list[str]:
    checks = queued["status"].get("admissionChecks", [])
    failed = [check for check in checks if check.get("state") in ("Retry", "Rejected") and check.get("message")]
    return [f"admission check {each.get('name')}: {each['message']}" for each in failed if each["message"] not in known]


def _current(cluster: Cluster, quota: Object, namespace: str) -> tuple[str, bool]:
    message = _message(quota)
    if found := _INACTIVE.search(message):
        queues = [each for each in cluster.all(CLUSTER_QUEUE) if each["metadata"]["name"] == found[1]]
        active = condition(queues[0], "Active") if queues else {}
        return f"{message}: {_message(active)}".rstrip(": "), active.get("status") == "False"
    if _NO_QUEUE.search(message) and (queues := cluster.all(LOCAL_QUEUE, namespace)):
        known = ", ".join(sorted(each["metadata"]["name"] for each in queues))
        return f"{message}; namespace {namespace} has: {known}", True
    return message, quota.get("reason") in _LASTING_REASONS or bool(_LASTING.search(message))


def _never_fits(message: str) -> tuple[set[str], str]:
    for part in filter(None, _POD_SET.split(message)):
        never = {name for found in _NEVER.finditer(part) for name in found.groups() if name}
        if never and "topology" not in part and not set(_AGAIN.findall(part)) - never:
            sizes = list(_TOO_MUCH.finditer(part))
            return {found["resource"] for found in sizes}, ", ".join(map(_size, sizes)) or part
    return set(), ""


def _size(found: re.Match[str]) -> str:
    asked = found["asked"] if found["before"] in ("0", "") else f"{found['before']} + {found['asked']}"
    return f"it requests {asked} {found['resource']}, and flavor {found['flavor']} has {found['most']} at most"
