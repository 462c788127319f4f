"""Removes nodes: taint, drain, and delete the machine (cluster-autoscaler/core/scaledown/actuation)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from k8s.objects import Object
from simulator.azure.autoscaler.groups import TO_BE_DELETED, Group
from simulator.azure.autoscaler.profile import PACE
from simulator.azure.autoscaler.scale_down import Unneeded
from simulator.azure.autoscaler.status import Reporter
from simulator.azure.autoscaler.view import View
from simulator.kube import drain
from simulator.kube.client import KubeClient, ignore_missing

_EVICTION_S = 2 * 60 / PACE
"""The time to retry evictions that a disruption budget blocks (upstream's --max-pod-eviction-time)."""
Delete = Callable[[Group, Collection[str]], bool]


class Removals:
    """A cluster's node removals. `last` and `failed` are the times of the last removal and the last failed drain."""

    def __init__(self, kube: KubeClient, reporter: Reporter, delete: Delete) -> None:
        self._kube, self._reporter, self._delete = kube, reporter, delete
        self._until: dict[str, float] = {}
        self.last = self.failed = float("-inf")

    def going(self, group: Group) -> int:
        return sum(node["metadata"]["name"] in self._until for node in group.nodes)

    def drains(self, pods: Iterable[Object]) -> bool:
        """Returns whether a node is being drained. Only one node is drained at a time (--max-drain-parallelism)."""
        return any(drain.to_move(pods, name) for name in self._until)

    def begin(self, chosen: Sequence[Unneeded], view: View) -> None:
        for each in chosen:
            self._mark(each.name, [{"key": TO_BE_DELETED, "value": str(int(view.now)), "effect": "NoSchedule"}])
            self._until[each.name] = view.now + _EVICTION_S + _most_s(view)
            self._reporter.record_for(each.node, "Node", "ScaleDown", "marked the node as toBeDeleted/unschedulable")
            if each.pods:
                moved = ", ".join(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in each.pods)
                what = f"utilization: {float(each.utilization):.3f}, pods to reschedule: {moved}"
                self._reporter.record("ScaleDown", f"Scale-down: removing node {each.name}, {what}")
            else:
                self._reporter.record("ScaleDownEmpty", f'Scale-down: removing empty node "{each.name}"')

    def advance(self, view: View) -> None:
        """Evicts pods, deletes empty nodes, and aborts removals after their deadline."""
        there = {node["metadata"]["name"] for node in view.all_nodes}
        self._until = {name: until for name, until in self._until.items() if name in there}
        for group in view.groups:
            empty = [node for node in group.nodes if self._is_empty(node, view)]
            if empty and self._delete(group, {node["metadata"]["name"] for node in empty}):
                self.last = view.now
                for node in empty:
                    self._reporter.record_for(node, "Node", "ScaleDown", "node removed by cluster autoscaler")

    def _is_empty(self, node: Object, view: View) -> bool:
        """Returns whether a marked node is empty. If not, evicts the pods until the deadline."""
        name = node["metadata"]["name"]
        if name not in self._until:
            if any(taint["key"] == TO_BE_DELETED for taint in node["spec"].get("taints") or []):
                self._mark(name, [])  # an earlier run set the taint
            return False
        moved = drain.to_move(view.pods, name)
        if moved and view.now > self._until[name]:
            self._give_up(node, view.now)
        elif moved:
            for pod in moved:
                drain.evict(self._kube, pod, _most_s(view))
        return not moved

    def _give_up(self, node: Object, now: float) -> None:
        name, text = node["metadata"]["name"], "failed to drain the node, aborting ScaleDown"
        self._until.pop(name)
        self._mark(name, [])
        self.failed = now
        self._reporter.record_for(node, "Node", "ScaleDownFailed", text, warning=True)

    def _mark(self, name: str, marks: list[Object]) -> None:
        if node := self._kube.find("v1", "Node", name):
            others = [taint for taint in node["spec"].get("taints") or [] if taint["key"] != TO_BE_DELETED]
            body = {"spec": {"taints": [*others, *marks]}}
            ignore_missing(lambda: self._kube.patch("v1", "Node", name, None, body))


def choose(ready: Sequence[Unneeded], removals: Removals, view: View) -> list[Unneeded]:
    """Selects empty nodes, or if there are none, one node to drain. Keeps each pool's minimum count."""
    bulk = int(view.profile.number("max-empty-bulk-delete"))
    empty = _within((each for each in ready if not each.pods), removals)[:bulk]
    full = [] if empty or removals.drains(view.pods) else _within((each for each in ready if each.pods), removals)[:1]
    return empty or full


def _most_s(view: View) -> int:
    return int(view.profile.number("max-graceful-termination-sec"))


def _within(found: Iterable[Unneeded], removals: Removals) -> list[Unneeded]:
    left: dict[str, int] = {}
    chosen: list[Unneeded] = []
    for each in found:
        spare = left.setdefault(each.group.id, each.group.target - each.group.least - removals.going(each.group))
        if spare > 0:
            left[each.group.id] -= 1
            chosen.append(each)
    return chosen
