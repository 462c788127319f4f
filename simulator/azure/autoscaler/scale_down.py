"""Selects unneeded nodes (cluster-autoscaler/core/scaledown, simulator/utilization, utils/drain). Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from config.data.scheduling import GPU_RESOURCE
from k8s.objects import Object
from k8s.resources import Resources, allocatable
from simulator.azure.autoscaler import fit
from simulator.azure.autoscaler.groups import GPU_LABEL, Group, lacks_gpus
from simulator.azure.autoscaler.profile import Profile
from simulator.azure.autoscaler.view import View, is_going
from simulator.kube import drain

_SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
_GPU_THRESHOLD = 0.5
"""Upstream's --scale-down-gpu-utilization-threshold. AKS's profile sets the threshold for CPU and memory only."""
_REPLICATED = ("ReplicationController", "ReplicaSet", "Job", "StatefulSet")
"""Owners that re-create evicted pods. Nodes with other pods stay (--skip-nodes-with-custom-controller-pods)."""


@dataclass(frozen=True)
class Unneeded:
    """A removable node, and the pods that would move to other nodes."""

    group: Group
    node: Object
    pods: list[Object]
    utilization: Fraction

    @property
    def name(self) -> str:
        return str(self.node["metadata"]["name"])


def unneeded(view: View, budgets: Sequence[Object]) -> list[Unneeded]:
    """Returns removable nodes in the order of the groups. For each node's pods, reserves capacity elsewhere."""
    staying = {_name(node): node for node in view.nodes if not is_going(node)}
    free = {name: fit.free(node, view.pods) for name, node in staying.items()}
    skips = view.profile.is_true("ignore-daemonsets-utilization")
    found: list[Unneeded] = []
    for group in view.groups:
        for node in group.started:
            used = utilization(node, view.pods, skip_daemon_sets=skips)
            moved = drain.to_move(view.pods, _name(node))
            if _name(node) not in staying or _is_used(node, used, view) or _is_kept(node, moved, budgets, view.profile):
                continue
            rest = {name: each for name, each in staying.items() if name != _name(node)}
            if _moves(moved, rest, free):
                del staying[_name(node)]
                found.append(Unneeded(group, node, moved, used))
    return found


def utilization(node: Object, pods: Sequence[Object], *, skip_daemon_sets: bool) -> Fraction:
    """Returns the utilization of GPUs, or for a node without GPUs, the higher one of CPU and memory.

    For a GPU node that does not advertise GPUs yet, returns 0. The capacity excludes skipped DaemonSets
    (simulator/utilization/info.go).
    """
    if lacks_gpus(node):
        return Fraction(0)
    skipped = [pod for pod in pods if skip_daemon_sets and drain.comes_with_nodes(pod)]
    has, left = fit.free(node, skipped), fit.free(node, pods)
    names = (GPU_RESOURCE,) if allocatable(node, GPU_RESOURCE) else ("cpu", "memory")
    return max((has[name] - left[name]) / has[name] for name in names)


def keeps(pod: Object, budgets: Iterable[Object], profile: Profile) -> str:
    metadata = pod["metadata"]
    name, safe = metadata["name"], metadata.get("annotations", {}).get(_SAFE)
    own = [each for each in budgets if _guards(each, pod)]
    if any(each.get("status", {}).get("disruptionsAllowed", 0) < 1 for each in own):
        return f"not enough pod disruption budget to move {metadata['namespace']}/{name}"
    if safe == "true":
        return ""
    if not any(owner["kind"] in _REPLICATED for owner in metadata.get("ownerReferences", [])):
        return f"{metadata['namespace']}/{name} is not replicated"
    if metadata["namespace"] == "kube-system" and profile.is_true("skip-nodes-with-system-pods") and not own:
        return f"non-daemonset, non-mirrored, non-pdb-assigned kube-system pod present: {name}"
    local = any("emptyDir" in volume or "hostPath" in volume for volume in pod["spec"].get("volumes", []))
    if local and profile.is_true("skip-nodes-with-local-storage"):
        return f"pod with local storage present: {name}"
    return f"pod annotated as not safe to evict present: {name}" if safe == "false" else ""


def _is_used(node: Object, used: Fraction, view: View) -> bool:
    """Returns whether utilization prevents removal (eligibility.go). Since 1.35, it must exceed the threshold."""
    named = view.profile.number("scale-down-utilization-threshold")
    threshold = Fraction(_GPU_THRESHOLD if GPU_LABEL in node["metadata"].get("labels", {}) else named)
    return used > threshold or (used == threshold and not view.since_1_35)


def _is_kept(node: Object, moved: Iterable[Object], budgets: Sequence[Object], profile: Profile) -> bool:
    if node["metadata"].get("annotations", {}).get(_DISABLED) == "true":
        return True
    return any(keeps(pod, budgets, profile) for pod in moved)


def _moves(pods: Iterable[Object], nodes: Mapping[str, Object], free: dict[str, Resources]) -> bool:
    """Returns whether all pods fit. If so, subtracts their requests from `free`."""
    tried, left = {name: dict(free[name]) for name in nodes}, fit.alike(pods)
    for name, node in nodes.items():
        fit.place(node, tried[name], left)
    done = not any(each.pods for each in left)
    if done:
        free |= tried
    return done


def _guards(budget: Object, pod: Object) -> bool:
    selector = budget["spec"].get("selector") or {}
    if budget["metadata"]["namespace"] != pod["metadata"]["namespace"] or selector.get("matchExpressions"):
        return False
    return bool((selector.get("matchLabels") or {}).items() <= pod["metadata"].get("labels", {}).items())


def _name(node: Object) -> str:
    return str(node["metadata"]["name"])
