"""Computes the earliest start and end of all work, and the critical path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter


@dataclass(frozen=True)
class Work:
    """A piece of work, and the names of the work that must end before this work starts."""

    name: str
    seconds: float
    after: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Slot:
    """The start and end of work in seconds. A delay of `critical` work delays the goal."""

    name: str
    start: float
    end: float
    critical: bool = False


def schedule(works: Iterable[Work], goal: str) -> list[Slot]:
    """Returns all works with their earliest times, sorted by start. Raises KeyError for an unknown name."""
    by_name = {work.name: work for work in works}
    ends: dict[str, float] = {}
    for name in TopologicalSorter({work.name: work.after for work in by_name.values()}).static_order():
        ends[name] = _start(by_name[name], ends) + by_name[name].seconds
    chain = set(critical_chain(by_name, ends, goal))
    slots = [Slot(work.name, _start(work, ends), ends[work.name], work.name in chain) for work in by_name.values()]
    return sorted(slots, key=lambda slot: (slot.start, slot.end, slot.name))


def critical_chain(works: Mapping[str, Work], ends: Mapping[str, float], goal: str) -> list[str]:
    """Returns the names of the work that determines when `goal` ends, from first to last."""
    chain = [goal]
    while before := works[chain[0]].after:
        chain.insert(0, max(sorted(before), key=lambda name: ends[name]))
    return chain


def _start(work: Work, ends: Mapping[str, float]) -> float:
    return max((ends[name] for name in work.after), default=0.0)
