"""Nodes that go: marked, emptied, and their machines deleted (cluster-autoscaler/core/scaledown/actuation)."""

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
"""For pods whose budgets forbid it at first; upstream's --max-pod-eviction-time."""
Delete = Callable[[Group, Collection[str]], bool]


class Removals:
    """Of one cluster. `last` and `failed` are when a node went last, and when one last could not be emptied."""

    def __init__(self, kube: KubeClient, reporter: Reporter, delete: Delete) -> None:
        self._kube, self._reporter, self._delete = kube, reporter, delete
        self._until: dict[str, float] = {}
        """By node, how long its pods may take."""
        self.last = self.failed = float("-inf")

    def going(self, group: Group) -> int:
        return sum(node["metadata"]["name"] in self._until for node in group.nodes)

    def drains(self, pods: Iterable[Object]) -> bool:
        """Whether a node is being emptied: one at a time (--max-drain-parallelism)."""
        return any(drain.to_move(pods, name) for name in self._until)

    def begin(self, chosen: Sequence[Unneeded], view: View) -> None:
        """Marks nodes, so that nothing new goes there."""
        for each in chosen:
            self._mark(each.name, [{"key": TO_BE_DELETED, "value": str(int(view.now)), "effect": "NoSchedule"}])
            self._until[each.name] = view.now + _EVICTION_S + _most_s(view)
            self._reporter.tell_of(each.node, "Node", "ScaleDown", "marked the node as toBeDeleted/unschedulable")
            if each.pods:
                moved = ", ".join(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in each.pods)
                what = f"utilization: {float(each.utilization):.3f}, pods to reschedule: {moved}"
                self._reporter.tell("ScaleDown", f"Scale-down: removing node {each.name}, {what}")
            else:
                self._reporter.tell("ScaleDownEmpty", f'Scale-down: removing empty node "{each.name}"')

    def advance(self, view: View) -> None:
        """Evicts, deletes what is empty, and gives up what takes too long."""
        there = {node["metadata"]["name"] for node in view.all_nodes}
        self._until = {name: until for name, until in self._until.items() if name in there}
        for group in view.groups:
            empty = [node for node in group.nodes if self._is_empty(node, view)]
            if empty and self._delete(group, {node["metadata"]["name"] for node in empty}):
                self.last = view.now
                for node in empty:
                    self._reporter.tell_of(node, "Node", "ScaleDown", "node removed by cluster autoscaler")

    def _is_empty(self, node: Object, view: View) -> bool:
        """Whether it is one that goes, and can go now. Evicts what is there, as long as there is time for it."""
        name = node["metadata"]["name"]
        if name not in self._until:
            if any(taint["key"] == TO_BE_DELETED for taint in node["spec"].get("taints") or []):
                self._mark(name, [])  # by one that was stopped since
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
        self._reporter.tell_of(node, "Node", "ScaleDownFailed", text, warning=True)

    def _mark(self, name: str, marks: list[Object]) -> None:
        """Gives the node these taints of ours, and leaves it others'."""
        if node := self._kube.find("v1", "Node", name):
            others = [taint for taint in node["spec"].get("taints") or [] if taint["key"] != TO_BE_DELETED]
            body = {"spec": {"taints": [*others, *marks]}}
            ignore_missing(lambda: self._kube.patch("v1", "Node", name, None, body))


def choose(ready: Sequence[Unneeded], removals: Removals, view: View) -> list[Unneeded]:
    """Empty nodes, several at once, else one that is not; none of a pool that has its least."""
    bulk = int(view.profile.number("max-empty-bulk-delete"))
    empty = _within((each for each in ready if not each.pods), removals)[:bulk]
    full = [] if empty or removals.drains(view.pods) else _within((each for each in ready if each.pods), removals)[:1]
    return empty or full


def _most_s(view: View) -> int:
    """For a pod's end: of its own time, which passes as everywhere."""
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
