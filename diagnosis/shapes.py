"""Normalizes Kubernetes objects to the fields and types that a diagnosis reads (fields.yaml).

Many custom resources accept anything: nulls, missing fields, other types. `shaped` removes all values that do not
match, so that other modules need no checks.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from config.data import data

_MOST_PODS = 100_000
"""The limit for numbers of pods: an object may request more pods than this program can list."""
_TYPES = {"text": str, "number": int, "flag": bool, "map": dict}
REPLICA_SPECS = tuple(f"{name}ReplicaSpecs" for name in ("pytorch", "tf", "mpi", "xgb", "paddle", "jax"))
_NEW_EVENT = {"note": "message", "regarding": "involvedObject", "deprecatedLastTimestamp": "lastTimestamp"}
"""Fields of events.k8s.io/v1, with their names in core/v1 (staging/src/k8s.io/api/events/v1/types.go)."""


@functools.cache
def _fields() -> Mapping[str, Mapping[str, Any]]:
    found: dict[str, dict[str, Any]] = data.parsed(Path(__file__).with_name("fields.yaml").read_text("utf-8"))
    return found


def shaped(kind: str, obj: Mapping[str, Any]) -> dict[str, Any]:
    shape = {**_fields()["objects"], **_fields()["kinds"].get(kind, {})}
    if kind == "Event":
        obj = {**obj, **{core: obj[new] for new, core in _NEW_EVENT.items() if obj.get(new) and not obj.get(core)}}
    found: dict[str, Any] = fit(obj, shape)
    if not found["metadata"]["uid"]:
        found["metadata"]["uid"] = f"{kind}/{found['metadata']['namespace']}/{found['metadata']['name']}"
    return found


def document(name: str, text: str) -> dict[str, Any]:
    """Returns the parsed YAML of a ConfigMap's document, without values that do not fit its shape; empty if it is not
    YAML.
    """
    try:
        return fit(yaml.safe_load(text), _fields()["documents"][name]) or {}
    except yaml.YAMLError:
        return {}


def fit(value: Any, shape: Any) -> Any:
    """Returns the part of the value that fits the shape (see fields.yaml), or None for another type."""
    if isinstance(shape, dict):
        return _fit_map(value, shape) if isinstance(value, dict) else None
    if isinstance(shape, list):
        kept = [fit(item, shape[0]) for item in value] if isinstance(value, list) else None
        return None if kept is None else [item for item in kept if item is not None]
    if shape == "time":
        return value if isinstance(value, str) and _is_time(value) else None
    if shape == "count":
        return min(value, _MOST_PODS) if isinstance(value, int) else None
    return value if shape == "any" or type(value) is _TYPES[shape] else None


def _is_time(text: str) -> bool:
    try:
        return datetime.datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _fit_map(value: Mapping[str, Any], shape: Mapping[str, Any]) -> dict[str, Any]:
    if "*" in shape:
        fits = {key: fit(item, shape["*"]) for key, item in value.items()}
        return {key: item for key, item in fits.items() if item is not None}
    found = {}
    for key, item in value.items():
        below = shape.get(key, shape.get(f"{key}!"))
        kept = _without_nulls(item) if below is None else fit(item, below)
        if kept is not None:
            found[key] = kept
    for name, below in shape.items():
        if name[-1] == "!" and name[:-1] not in found:
            found[name[:-1]] = fit("" if below == "text" else type(below)(), below)
    return found


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value
