"""Builds the dependency graph of a deployment from Pulumi's exported state, and adds the work in the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from simulator.bench.durations import Durations
from simulator.bench.schedule import Work


def works(export: Mapping[str, Any], known: Durations) -> list[Work]:
    custom = [found for found in export["deployment"]["resources"] if found.get("custom")]
    labels = {found["urn"]: label(found["urn"]) for found in custom}
    made = {labels[found["urn"]]: _before(found, labels) for found in custom}
    events = {event.name: event for event in known.events}
    after = {name: set(before) for name, before in made.items()}
    for event in known.events:
        after[event.name] = {name for pattern in event.after for name in _matching(pattern, [*made, *events])}
    steps = {name: events[name].step if name in events else known.step_of(name) for name in after}
    return [Work(name, known.seconds(steps[name]), frozenset(before)) for name, before in after.items()]


def label(urn: str) -> str:
    """Returns `<type> <name>` of a resource, without its parents' types."""
    *_, types, name = urn.split("::")
    return f"{types.rpartition('$')[2]} {name}"


def _before(resource: Mapping[str, Any], labels: Mapping[str, str]) -> set[str]:
    provider = str(resource.get("provider", "")).rpartition("::")[0]
    return {labels[urn] for urn in [*resource.get("dependencies", []), provider] if urn in labels}


def _matching(pattern: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if fnmatchcase(name, pattern)]
