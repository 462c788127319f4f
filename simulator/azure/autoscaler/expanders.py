"""Expanders, which select the pool to scale up (cluster-autoscaler/expander). Pure functions."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import yaml

from config.data import data
from k8s.objects import Object
from simulator.azure.autoscaler import fit
from simulator.azure.autoscaler.groups import Group

PRIORITIES, KEY = "cluster-autoscaler-priority-expander", "priorities"
Warn = Callable[[str, str], None]
"""Records an event of the ConfigMap `PRIORITIES`. Takes a reason and a message."""


@dataclass(frozen=True)
class Option:
    """A possible scale-up: a pool's new nodes, and the pods that would run there."""

    group: Group
    nodes: int
    pods: list[Object]


def best(
    expander: str, options: Sequence[Option], priorities: Object | None, chance: random.Random, warn: Warn
) -> Option | None:
    """Returns the best option (if several, a random one), or None if the priority expander has no valid ConfigMap."""
    match expander:
        case "most-pods":
            left = _least(options, lambda option: -len(option.pods))
        case "least-waste":
            left = _least(options, waste)
        case "priority":
            left = by_priority(options, priorities, warn)
        case _:
            left = list(options)
    return chance.choice(left) if left else None


def waste(option: Option) -> Fraction:
    """Returns the idle share of the new nodes: the mean of CPU's and memory's (expander/waste)."""
    has, requests = fit.capacity(option.group.template), [fit.requests_of(pod) for pod in option.pods]
    idle = (
        1 - sum((each.get(name, Fraction(0)) for each in requests), Fraction(0)) / (has[name] * option.nodes)
        for name in ("cpu", "memory")
    )
    return sum(idle, Fraction(0)) / 2


def by_priority(options: Sequence[Option], priorities: Object | None, warn: Warn) -> list[Option]:
    """Returns the options that match the highest priority, or all if none matches (expander/priority)."""
    if priorities is None:
        return []
    try:
        patterns = parsed(priorities)
    except ValueError as error:
        warn("PriorityConfigMapInvalid", str(error))
        return []
    ranked: dict[int, list[Option]] = {}
    for option in options:
        found = [number for number, each in patterns.items() if any(one.search(option.group.id) for one in each)]
        if found:
            ranked.setdefault(max(found), []).append(option)
        else:
            text = "not found in priority expander configuration. The group won't be used."
            warn("PriorityConfigMapNotMatchedGroup", f"Priority expander: node group {option.group.id} {text}")
    if not ranked:
        text = "no priorities info found for any of the expansion options. Falling back to random choice."
        warn("PriorityConfigMapNoGroupMatched", f"Priority expander: {text}")
        return list(options)
    return ranked[max(ranked)]


def parsed(priorities: Object) -> dict[int, list[re.Pattern[str]]]:
    """Parses the ConfigMap. Raises ValueError with upstream's text if upstream would ignore the ConfigMap."""
    text = priorities.get("data", {}).get(KEY)
    if text is None:
        raise ValueError(f"Wrong configmap for priority expander, doesn't contain {KEY} key. Ignoring update.")
    wrong = "Wrong configuration for priority expander"
    try:
        found = data.parsed(text)
        if not isinstance(found, dict) or not all(isinstance(number, int) for number in found):
            raise ValueError(f"{wrong}: {KEY} are lists of patterns by whole numbers. Ignoring update.")
        return {number: [re.compile(str(each)) for each in patterns or []] for number, patterns in found.items()}
    except (yaml.YAMLError, re.error, TypeError) as error:
        raise ValueError(f"{wrong}: {error}. Ignoring update.") from error


def _least(options: Sequence[Option], size: Callable[[Option], int | Fraction]) -> list[Option]:
    sizes = [size(option) for option in options]
    return [option for option, each in zip(options, sizes, strict=True) if each == min(sizes)]
