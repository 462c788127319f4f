"""Scale-up options for pending pods (cluster-autoscaler/core/scaleup/orchestrator). Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from k8s.objects import Object
from simulator.azure.autoscaler import fit
from simulator.azure.autoscaler.expanders import Option
from simulator.azure.autoscaler.fit import Alike
from simulator.azure.autoscaler.groups import Group
from simulator.azure.autoscaler.view import View, is_going


def unplaced(waiting: Iterable[Object], view: View) -> list[Alike]:
    left = fit.alike(waiting)
    for node in view.nodes:
        if any(each.pods for each in left) and not is_going(node):
            fit.place(node, fit.free(node, view.pods), left)
    for group in view.groups:
        for _ in range(group.upcoming):
            fit.place(group.template, fit.capacity(group.template), left)
    return [each for each in left if each.pods]


def options(waiting: Sequence[Alike], groups: Iterable[Group]) -> list[Option]:
    found = (_option(waiting, group) for group in groups)
    return [option for option in found if option.pods]


def _option(waiting: Sequence[Alike], group: Group) -> Option:
    left = [Alike(list(each.pods), each.requests) for each in waiting]
    held: list[Object] = []
    nodes = 0
    while nodes < group.most - group.target:
        placed = fit.place(group.template, fit.capacity(group.template), left)
        if not placed:
            break
        held += placed
        nodes += 1
    return Option(group, nodes, held)


def reasons(pod: Object, groups: Iterable[Group], skipped: Callable[[Group], str]) -> str:
    """Returns why no group fits the pod. `skipped` returns why a group cannot grow, or an empty string."""
    counted = Counter(skipped(group) or fit.why_not(pod, group.template) for group in groups)
    return ", ".join(f"{count} {reason}" for reason, count in counted.items() if reason)
