"""Reports pods on lost nodes. A node is lost if its kubelet is silent or not ready, or if the Node object was deleted.

A lost node gets the taint `unreachable` or `not-ready`. A pod's tolerations set how long it stays, 300 seconds by
default (kubernetes.io, "Taints and Tolerations"). Then Kubernetes marks the pod for deletion. It remains until the
kubelet returns, the Node is deleted, or a user forces the deletion (kubernetes.io, "Force Delete StatefulSet Pods").
Pod GC checks every 20 seconds, and deletes pods of a deleted Node after 40 seconds (Kubernetes,
pkg/controller/podgc/gc_controller.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from diagnosis.cluster import POD, Cluster
from diagnosis.finding import Finding, clock, grouped, later, listed, one_line
from k8s.objects import Object, condition, has_ended
from k8s.scheduling import tolerates

_LOST = {"Unknown": "unreachable", "False": "not ready"}
"""Descriptions by the status of the node's condition Ready."""
_TAINTS = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
REPAIR = "AKS tries to repair such a node (docs/lost-nodes.md)"
_OFF = "only if its VM is off: otherwise the container keeps running (docs/lost-nodes.md)"


@dataclass(frozen=True)
class _State:
    node: str
    namespace: str
    where: str
    then: str
    forced: bool = False
    """Whether the pods end only if the node returns or is deleted, or if a user forces the deletion."""


def lost_pods(cluster: Cluster, pods: Iterable[Object]) -> list[Finding]:
    lost = ((_state(cluster, pod), pod["metadata"]["name"]) for pod in pods if is_lost(cluster, pod))
    return [_finding(state, names) for state, names in grouped(lost).items()]


def never_ending(cluster: Cluster) -> list[Finding]:
    return lost_pods(cluster, [pod for pod in cluster.all(POD) if _is_terminating(pod)])


def is_lost(cluster: Cluster, pod: Object) -> bool:
    name = pod["spec"].get("nodeName")
    if not name or has_ended(pod) or not cluster.is_complete:
        return False
    node = cluster.node(name)
    return node is None or condition(node, "Ready").get("status") in _LOST


def _finding(state: _State, names: Sequence[str]) -> Finding:
    why = one_line(f"{listed(names, 'pod')} {'is' if len(names) == 1 else 'are'} {state.where}: {state.then}")
    if state.forced:
        return Finding(why, f"kubectl delete pod -n {state.namespace} {' '.join(names)} --force    # {_OFF}")
    return Finding(why, f"kubectl describe node {state.node}    # {REPAIR}")


def _state(cluster: Cluster, pod: Object) -> _State:
    name, namespace = pod["spec"]["nodeName"], pod["metadata"]["namespace"]
    node, terminating = cluster.node(name), _is_terminating(pod)
    where = f"{'Terminating' if terminating else pod.get('status', {}).get('phase', 'Pending')} on node {name}"
    if node is None:
        return _State(name, namespace, f"{where} (deleted)", "Kubernetes deletes its pods in about a minute")
    ready = condition(node, "Ready")
    since = f" since {clock(ready['lastTransitionTime'])}" if ready.get("lastTransitionTime") else ""
    lost = f"{where} ({_LOST[ready['status']]}{since})"
    if terminating and ready["status"] == "Unknown":
        then = "this ends when the node returns or is deleted, or when you force the deletion"
        return _State(name, namespace, lost, then, forced=True)
    then = "Its kubelet has to end the pods." if terminating else _deleted(node, pod)
    return _State(name, namespace, lost, f"{ready.get('message', '')} {then}".lstrip())


def _deleted(node: Object, pod: Object) -> str:
    """Returns when Kubernetes deletes the pod: after its shortest toleration of the taint
    (pkg/controller/tainteviction).
    """
    evicting = [each for each in node["spec"].get("taints", []) if each["effect"] == "NoExecute"]
    taint = next((each for each in evicting if each["key"] in _TAINTS), None)
    if taint is None:
        return "Kubernetes will taint the node soon."
    mine = [each for each in pod["spec"].get("tolerations", []) if tolerates([each], taint)]
    seconds = [each["tolerationSeconds"] for each in mine if each.get("tolerationSeconds") is not None]
    if mine and not seconds:
        return "The pods tolerate this without a limit, and wait for the node."
    wait = max(min(seconds, default=0), 0)
    when = f" (at {clock(later(taint['timeAdded'], wait))})" if taint.get("timeAdded") else ""
    return f"If the node does not return within {wait} s of its taint{when}, Kubernetes deletes its pods."


def _is_terminating(pod: Object) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))
