"""Why pods are on no node yet: the scheduler's own words, and what stands behind them on each node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from config.facts.scheduling import COSCHEDULER, HEALTH_TAINT, VOLCANO, VOLCANO_GROUP
from diagnosis.claims import without_volume
from diagnosis.cluster import (
    NODE,
    POD_GROUP,
    Cluster,
    Object,
    condition,
    labelled,
    told_at,
)
from diagnosis.conditions import failed_check
from diagnosis.cordons import cordon
from diagnosis.drivers import not_offered
from diagnosis.finding import Finding, Obstacle, one_line, together
from diagnosis.nodes import allocatable, choice, chosen, requested, untolerated, words_of
from diagnosis.policies import unready_policies

_SCHEDULERS = {
    VOLCANO: ("Volcano's scheduler", ("app", "volcano-scheduler")),
    COSCHEDULER: ("the scheduler of scheduler-plugins", ("component", "scheduler")),
}
"""By their names in pods: what they are called here, and the label of their pods, as their charts have it."""
_JOB_LABELS = ("volcano.sh/job-name", "batch.kubernetes.io/job-name")
_SYSTEM = {"kubernetes.azure.com/mode": "system"}
_UNSCHEDULABLE = "Unschedulable"
_FAILED = "FailedScheduling"
"""Event of a pod, by Kubernetes' schedulers."""
_OFFERED_NO_MORE = "can possibly be assigned to"
"""Volcano's words of a pod that would fit, if only the rest of its gang did (api/job_info.go)."""
_NODES = re.compile(r"0/\d+ nodes ")
"""What the words of one pod's placement begin with, of Kubernetes' scheduler and of Volcano's."""
_ORIGIN = "Origin reason is "
"""Of Volcano's words of a gang (api/job_info.go, FitError): what one of its pods lacks, behind the gang's state."""
_GANG = re.compile(
    "pod group is not ready"
    "|cannot find enough sibling pods|optimistic rejection in PostFilter|rejection in Unreserve|due to timeout after"
)
"""The mere state of a gang: Volcano's, and Coscheduling's (scheduler-plugins' pkg/coscheduling)."""
_NO_PODS = re.compile(r"\d+/0 tasks in gang unschedulable: (?!.*Origin reason is )")
"""Volcano's of a gang whose pods are not made yet (cache.go, RecordJobStatusEvent): it says nothing."""
_QUOTA = "queue resource quota insufficient"
"""Volcano's of a gang that its queue does not let in (plugins/proportion, plugins/capacity)."""
_PENDING = "Pending"
"""Phase of a PodGroup that Volcano has not let in; pods of its own jobs are made only afterwards."""
_OVERUSED = "resource in cluster is overused"
"""Volcano's of a gang that is let in later, for nodes have no room by far (plugins/overcommit)."""


def not_placed(cluster: Cluster, pods: Sequence[Object]) -> list[Finding]:
    """`pods` have no node; those of a gang that Volcano does not let in yet are as their templates say."""
    if not pods:
        return []
    if off := _off(cluster, pods[0]):
        return [off]
    findings = [finding for alike in _alike(pods) for finding in _behind(cluster, alike)] if cluster.whole else []
    policies = unready_policies(cluster) if any(_lack_devices(cluster, pod) for pod in pods) else []
    return [*_said(cluster, pods, known=bool(findings)), *findings, *policies, *without_volume(cluster, pods)]


def _off(cluster: Cluster, pod: Object) -> Finding | None:
    """A scheduler that does not run."""
    called, (label, value) = _SCHEDULERS.get(pod["spec"].get("schedulerName"), ("", ("", "")))
    if not called or cluster.runs({label: value}):
        return None
    return Finding(f"{called} does not run", f"kubectl get pods -A --selector {label}={value}")


def _alike(pods: Iterable[Object]) -> list[list[Object]]:
    """Pods that may go to the same nodes and want the same there."""
    found: dict[str, list[Object]] = {}
    for pod in pods:
        key = [pod["spec"].get(field) for field in ("nodeSelector", "affinity", "tolerations")]
        found.setdefault(f"{key} {requested(pod)}", []).append(pod)
    return list(found.values())


def _behind(cluster: Cluster, pods: Sequence[Object]) -> list[Finding]:
    pod, wanted = pods[0], requested(pods[0])
    nodes = _candidates(cluster, pod)
    if not nodes:
        return [Finding(f"there is no node {choice(pod)}".rstrip() + " yet", "kubectl get nodes")]
    found = [(node["metadata"]["name"], _obstacle(cluster, node, pod, wanted)) for node in nodes]
    obstacles = [(name, obstacle) for name, obstacle in found if obstacle]
    needed = len(pods) if wanted else 1
    if len(nodes) - len(obstacles) >= needed:
        return []
    return [*together(obstacles), *_too_few(cluster, nodes, pods, wanted)]


def _lack_devices(cluster: Cluster, pod: Object) -> bool:
    """Whether a node that the pod may choose offers fewer devices than it wants, taken or not."""
    wanted = requested(pod).items()
    return any(allocatable(node, name) < count for node in _candidates(cluster, pod) for name, count in wanted)


def _candidates(cluster: Cluster, pod: Object) -> list[Object]:
    """Nodes that the pod may choose; AKS's system nodes only if it wants no devices."""
    nodes = [node for node in cluster.all(NODE) if chosen(node, pod)]
    return [node for node in nodes if not requested(pod) or not labelled(node, _SYSTEM)]


def _obstacle(cluster: Cluster, node: Object, pod: Object, wanted: dict[str, int]) -> Obstacle | None:
    """What keeps a pod off a node that it might choose."""
    if taints := untolerated(node, pod["spec"]):
        return _taint(cluster, node, taints[0])
    for resource, count in wanted.items():
        if allocatable(node, resource) < count:
            return not_offered(cluster, node, resource, count)
    for resource, count in wanted.items():
        holders = [other for other in cluster.on_node(node) if requested(other).get(resource)]
        free = allocatable(node, resource) - sum(requested(other)[resource] for other in holders)
        if free < count:
            taken = " and ".join(sorted({_workload(other) for other in holders}))
            return Obstacle(f"{resource} is taken by {taken}")
    return None


def _taint(cluster: Cluster, node: Object, taint: Object) -> Obstacle:
    name = node["metadata"]["name"]
    if taint["key"] == "node.kubernetes.io/unschedulable":
        return cordon(cluster, node)
    if taint["key"].startswith("node.kubernetes.io/"):
        return Obstacle(f"not in order: taint {words_of(taint)}", f"kubectl describe node {name}")
    if taint["key"] == HEALTH_TAINT:
        return failed_check(node)
    fix = "take it from the pool (pools.<key>.taints)    # or list it with all others in podOverrides.spec.tolerations"
    return Obstacle(f"no toleration for taint {words_of(taint)}", fix)


def _too_few(
    cluster: Cluster, nodes: Sequence[Object], pods: Sequence[Object], wanted: dict[str, int]
) -> list[Finding]:
    """More of a gang than all nodes have room for, were they free; those that offer nothing yet count as large."""
    if not wanted or _lack_devices(cluster, pods[0]):
        return []
    room = sum(min(allocatable(node, resource) // count for resource, count in wanted.items()) for node in nodes)
    if room >= len(pods):
        return []
    each = ", ".join(f"{count} {resource}" for resource, count in wanted.items())
    return [Finding(f"{len(pods)} pods want {each} each, and the nodes that they may use have room for {room}")]


def _said(cluster: Cluster, pods: Sequence[Object], *, known: bool) -> list[Finding]:
    """The words of the scheduler, as it writes them to pods, or to their group while there are none.

    Where the cause is `known`, the mere state of a gang adds nothing, and changes from one look to the next.
    """
    on_pods = [condition(pod, "PodScheduled") for pod in pods]
    told = [str(entry.get("message", "")) for entry in on_pods if entry.get("status") == "False"]
    told = [message for message in told if message and _OFFERED_NO_MORE not in message] or _of_group(cluster, pods)
    told = [message.rpartition(_ORIGIN)[2] for message in told]
    if not told:
        return []
    told.sort(key=lambda message: (bool(_GANG.search(message)), not _NODES.match(message)))
    if told[0] == _QUOTA:  # a queue without a quota of its own has what all nodes offer, and they lack it
        return [] if known else [Finding("the quota of its queue is used up", "kubectl describe queues")]
    if told[0] == _OVERUSED:
        return [Finding("Volcano lets it in once nodes have room for it")]
    if _GANG.search(told[0]):
        if known:
            return []
        told = [*_before(cluster, pods), *told]
    return [Finding(one_line(f"the scheduler says: {told[0]}"))]


def _before(cluster: Cluster, pods: Sequence[Object]) -> list[str]:
    """What one of them lacked last: Coscheduling writes the state of their gang over it."""
    failed = [event for pod in pods for event in cluster.events(pod) if event.get("reason") == _FAILED]
    found = [event for event in sorted(failed, key=told_at) if not _GANG.search(event["message"])]
    return [event["message"] for event in found][-1:]


def _of_group(cluster: Cluster, pods: Sequence[Object]) -> list[str]:
    metadata = pods[0]["metadata"]
    wanted = metadata.get("annotations", {}).get(VOLCANO_GROUP)
    for group in cluster.all(POD_GROUP, metadata.get("namespace", "")):
        if group["metadata"]["name"] == wanted:
            events = [event["message"] for event in cluster.events(group) if event.get("reason") == _UNSCHEDULABLE]
            said = [condition(group, _UNSCHEDULABLE).get("message", ""), *events]
            let_in = group.get("status", {}).get("phase", _PENDING) != _PENDING
            past = (_QUOTA, _OVERUSED) if let_in else ()
            return [told for told in said if told and told not in past and not _NO_PODS.match(told)][-1:]
    return []


def _workload(pod: Object) -> str:
    metadata: dict[str, Any] = pod["metadata"]
    labels = metadata.get("labels", {})
    name = next((labels[label] for label in _JOB_LABELS if label in labels), metadata["name"])
    return f"{metadata['namespace']}/{name}"
