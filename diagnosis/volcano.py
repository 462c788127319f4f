"""Reports why Volcano does not admit a gang, or why it deletes a job's pods.

The messages are those of Volcano's plugins (v1.15.1, pkg/scheduler/plugins: proportion, capacity, overcommit); Volcano
1.10 omits names of resources. If a queue's `capability` omits a resource, only the nodes limit it (proportion.go and
capacity.go: `realCapability.MinDimensionResource(attr.capability, api.Infinity)`). Before 1.8.2, such a queue had
nothing of that resource. The plugin overcommit admits gangs up to 1.2 times the resources of all nodes, including
admitted gangs that are not placed yet (overcommit.go).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from config.data.scheduling import VOLCANO_GROUP
from diagnosis.cluster import POD_GROUP, Cluster, Kind, where
from diagnosis.finding import Finding, joined, listed, one_line
from k8s.objects import Object, condition
from k8s.quantities import count

QUEUE = Kind("scheduling.volcano.sh/v1beta1", "Queue", "queues")
UNSCHEDULABLE = "Unschedulable"
_QUOTA = "queue resource quota insufficient"
_OVERUSED = "resource in cluster is overused"
_REFUSALS = (_QUOTA, _OVERUSED, "resource quota insufficient")
_PENDING = "Pending"
"""Phase of a PodGroup that Volcano has not admitted. Volcano creates the pods of a Volcano Job only after admission."""
_INQUEUE = "Inqueue"
_CHANGES = {
    "Restarting": "Volcano deletes its pods, then restarts it",
    "Aborting": "Volcano deletes its pods, since the job is aborted",
    "Terminating": "Volcano deletes its pods, since the job is terminated",
    "Completing": "Volcano deletes the remaining pods, since the job is complete",
}
_MOST_RETRIES = 3
"""Volcano's default maxRetry (pkg/webhooks/admission/jobs/mutate/mutate_job.go)."""


def gang(cluster: Cluster, pod: Object) -> Object | None:
    """Returns the PodGroup that the pod names, or None."""
    metadata = pod["metadata"]
    wanted = metadata.get("annotations", {}).get(VOLCANO_GROUP)
    groups = cluster.all(POD_GROUP, metadata.get("namespace", "")) if wanted else []
    return next((group for group in groups if group["metadata"]["name"] == wanted), None)


def messages_of(cluster: Cluster, group: Object | None) -> list[str]:
    if group is None:
        return []
    events = [event.get("message") for event in cluster.events(group) if event.get("reason") == UNSCHEDULABLE]
    messages = [condition(group, UNSCHEDULABLE).get("message"), *events]
    return [each for each in messages if each and not (_is_in(group) and each.startswith(_REFUSALS))]


def closed_queue(cluster: Cluster, group: Object | None, *, sure: bool = False) -> list[Finding]:
    """Returns why the queue of a gang or job accepts no jobs; empty if it accepts them. Volcano does not report this.

    If the cluster shows no queues, reports a missing queue only if `sure`. Volcano itself creates `default`.
    """
    name, queue = _queue(cluster, group)
    if not group or not name or _is_in(group):
        return []
    if queue is None and (cluster.all(QUEUE) or (sure and name != "default")):
        return [Finding(f"Volcano has no queue {name}", "kubectl get queues.scheduling.volcano.sh", lasts=True)]
    if (state := queue["status"].get("state") if queue else "") in (None, "", "Open"):
        return []
    why = "was closed" if state in ("Closed", "Closing") else f"is {state}"
    fix = f"vcctl queue operate --action open --name {name}    # first find out why it {why}"
    return [Finding(f"Volcano's queue {name} is {state}", fix, lasts=True)]


def _queue(cluster: Cluster, group: Object | None) -> tuple[str, Object | None]:
    name = group["spec"].get("queue", "") if group else ""
    return name, next((queue for queue in cluster.all(QUEUE) if queue["metadata"]["name"] == name), None)


def refusal(cluster: Cluster, group: Object | None, message: str, *, known: bool) -> list[Finding] | None:
    """Returns why Volcano refuses a gang, from its message; None for another message.

    `known` is whether another finding already shows what the nodes lack.
    """
    if message.startswith(_OVERUSED):
        return [_overused(cluster, group, message.removeprefix(_OVERUSED), known=known)]
    if message.startswith(_QUOTA):
        return _queue_full(cluster, group, message.removeprefix(_QUOTA), known=known)
    return None


def changing(job: Object) -> Iterator[Finding]:
    state = job["status"].get("state", {})
    if change := _CHANGES.get(state.get("phase", "")):
        why = joined(restarts(job), state.get("reason"), state.get("message"))
        look, restarting = f"kubectl describe vcjob {where(job)}", state["phase"] == "Restarting"
        yield Finding(one_line(f"{change} ({why})" if why else change), look, passing=not restarting)


def restarts(job: Object) -> str:
    """Returns how often Volcano has restarted a Volcano Job; empty if never."""
    spent = job["status"].get("retryCount")
    return f"{spent} of {job['spec'].get('maxRetry', _MOST_RETRIES)} restarts used" if spent else ""


def _overused(cluster: Cluster, group: Object | None, names: str, *, known: bool) -> Finding:
    if known or "cpu" in names or "memory" in names:
        return Finding(f"Volcano admits it when nodes have enough free resources{names}")
    metadata = [each["metadata"] for each in cluster.all(POD_GROUP) if each != group and _phase(each) == _INQUEUE]
    if called := [f"{each['namespace']}/{each['name']}" for each in metadata]:
        why = f"pods of {listed(called, 'PodGroup')} are already admitted, and not scheduled yet"
        return Finding(
            f"nodes have enough free resources, but Volcano does not admit it: {why}", "kubectl get podgroups -A"
        )
    why = "Volcano's plugin overcommit counts the cluster as overused"
    restart = "kubectl rollout restart -n volcano-system deployment/volcano-scheduler"
    restart += "    # if this lasts for minutes (volcano#4385)"
    return Finding(f"nodes have enough free resources, but Volcano does not admit it: {why}{names}", restart)


def _queue_full(cluster: Cluster, group: Object | None, names: str, *, known: bool) -> list[Finding]:
    name, queue = _queue(cluster, group)
    capability: dict[str, Any] = queue["spec"].get("capability", {}) if queue else {}
    asked: dict[str, Any] = group["spec"].get("minResources", {}) if group else {}
    large = [
        f"{asked[each]} {each}, and the queue's capability is {most}"
        for each, most in capability.items()
        if each in asked and count(asked[each]) > count(most)
    ]
    look = f"kubectl describe queues.scheduling.volcano.sh {name}"
    if large:
        never = f"it never fits in Volcano's queue {name}: it requests {'; '.join(large)}"
        return [Finding(never, f"{look}    # request less, or raise spec.capability", lasts=True)]
    used_up = f"{joined('the quota of its queue', name, 'is used up', by=' ')}{names}"
    if not capability:  # the queue may use all nodes: their lack of resources is the cause
        return [] if known else [Finding(used_up, "kubectl describe queues")]
    limits = ", ".join(f"{most} {each}" for each, most in capability.items())
    free = [each for each in asked if "/" in each and each not in capability]
    if free:
        limits += f"; {' and '.join(free)} is not set: unlimited since Volcano 1.8.2, 0 before"
    return [Finding(f"{used_up} (its capability is {limits})", look)]


def _is_in(group: Object) -> bool:
    return _phase(group) != _PENDING


def _phase(group: Object) -> str:
    return str(group["status"].get("phase") or _PENDING)
