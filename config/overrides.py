"""`podOverrides`: what a user lays over the pods that a workload makes, merged last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

from config.base import unfit
from config.pod_template import Fault, template_faults

MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
}
"""Lists whose items are merged by the value of a key, as Kubernetes' strategic merge patch does; others are replaced.

Source: `patchMergeKey` in the types of k8s.io/api/core/v1.
"""
TEMPLATE_KEYS = ("metadata", "spec")


def merge(base: Any, over: Any, key: str = "") -> Any:
    """`over` laid over `base`, which is left alone: maps deep, lists of named things by name, all else replaced.

    A null in a map takes the key out. `key` is that under which the two stand, which tells lists apart.
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
    """Refuses what `merge` could not lay over a pod template."""
    for path, what, allowed in _faults(overrides):
        raise unfit(what, None, *path, allowed=allowed)
    return overrides


def _faults(overrides: Mapping[str, Any]) -> Iterator[Fault]:
    for key in overrides:
        if key not in TEMPLATE_KEYS:
            parts = ", ".join(TEMPLATE_KEYS)
            yield (key,), f"is not a part of a pod template ({parts})", parts
    yield from _unnamed(overrides, ())
    if overrides:
        yield from template_faults(overrides)


def _unnamed(value: object, path: tuple[str | int, ...]) -> Iterator[Fault]:
    """Lists that are merged by a key, with an item that lacks it."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            name = MERGE_KEYS.get(key)
            if name and below is not None and not _all_have(below, name):
                yield (*path, key), f"is not a list of maps that each have a {name}", f"items with a {name}"
            else:
                yield from _unnamed(below, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unnamed(item, (*path, index))


def _all_have(value: object, key: str) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) and key in item for item in value)


PodOverrides = Annotated[dict[str, Any], AfterValidator(_pod_template)]
"""A pod template, {"metadata": ..., "spec": ...}, with only what is to differ."""
