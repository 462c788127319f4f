"""`podOverrides`: the user's changes to a workload's pod template, merged last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Annotated, Any

from pydantic import AfterValidator

from config.problems.errors import MAX_LISTED
from config.schema.base import Unfit, unfits
from config.schema.pod_template import template_faults

MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
}
"""The lists that are merged by a key of their items, as in Kubernetes' strategic merge patch (`patchMergeKey` in the
types of k8s.io/api/core/v1). Other lists are replaced.
"""
TEMPLATE_KEYS = ("metadata", "spec")


def merge(base: Any, over: Any, key: str = "") -> Any:
    """Returns `base` with `over` merged into it: maps by key, lists of named items by name. Other values are replaced.

    A null in a map removes the key. `base` is not changed. `key` is the key of both values, and identifies lists.
    """
    if isinstance(over, Mapping):
        under = base if isinstance(base, Mapping) else {}
        merged = {**under, **{name: merge(under.get(name), value, name) for name, value in over.items()}}
        return {name: value for name, value in merged.items() if value is not None}
    if key in MERGE_KEYS and isinstance(base, list) and isinstance(over, list):
        name = MERGE_KEYS[key]
        changes = {item[name]: item for item in over}
        kept = [merge(item, changes.pop(item[name], {})) for item in base]
        return [*kept, *changes.values()]
    return over


def _pod_template(overrides: dict[str, Any]) -> dict[str, Any]:
    by_place: dict[tuple[str | int, ...], Unfit] = {}
    for fault in islice(_faults(overrides), MAX_LISTED):
        by_place.setdefault(fault.below, fault)
    if by_place:
        raise unfits(list(by_place.values()))
    return overrides


def _faults(overrides: Mapping[str, Any]) -> Iterator[Unfit]:
    for key in overrides:
        if key not in TEMPLATE_KEYS:
            parts = ", ".join(TEMPLATE_KEYS)
            yield Unfit(f"is not a part of a pod template ({parts})", None, (key,), parts)
    yield from _unnamed(overrides, ())
    if template := {key: value for key, value in overrides.items() if key in TEMPLATE_KEYS}:
        yield from template_faults(template)


def _unnamed(value: object, path: tuple[str | int, ...]) -> Iterator[Unfit]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            name = MERGE_KEYS.get(key)
            if name and below is not None and not _all_have(below, name):
                what = f"is not a list of maps that each have a {name}"
                yield Unfit(what, None, (*path, key), f"items with a {name}")
            else:
                yield from _unnamed(below, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unnamed(item, (*path, index))


def _all_have(value: object, key: str) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) and key in item for item in value)


PodOverrides = Annotated[dict[str, Any], AfterValidator(_pod_template)]
"""The changed part of a pod template, {"metadata": ..., "spec": ...}."""
