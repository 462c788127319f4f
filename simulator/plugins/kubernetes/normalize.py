"""Converts objects to the API server's canonical form, so that two notations of one value are equal."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from k8s.objects import Object
from k8s.quantities import canonical
from simulator.plugins.kubernetes.kinds import is_crd, kind_of
from simulator.plugins.marshal import has_unknown

_READ_ONLY_METADATA = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
)
_QUANTITY_MAPS = {"requests", "limits", "capacity", "allocatable", "hard", "overhead"}
_LIMIT_RANGE_MAPS = {"max", "min", "default", "defaultRequest", "maxLimitRequestRatio"}


def normalize(obj: Object) -> Object:
    """Returns a copy without read-only metadata. It is canonical for built-in kinds without unknown values."""
    if kind_of(obj).built_in and not has_unknown(obj):
        obj = _normalize_built_in(obj)
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        kept = {name: value for name, value in metadata.items() if name not in _READ_ONLY_METADATA}
        obj = {**obj, "metadata": kept}
    return obj


def drops_empty(obj: Object) -> bool:
    """Returns whether the official plugin drops empty values of the object, by converting it to a Go type and back.

    The plugin converts built-in kinds, except Secrets and CRDs (provider/pkg/clients/unstructured.go, Normalize).
    """
    return kind_of(obj).built_in and not is_crd(obj) and obj.get("kind") != "Secret"


def _normalize_built_in(obj: Object) -> Object:
    if is_crd(obj):
        return _normalize_crd(obj)
    if obj.get("kind") == "Secret":
        return _normalize_secret(obj)
    if obj.get("kind") == "ConfigMap":
        return obj
    maps = _QUANTITY_MAPS | (_LIMIT_RANGE_MAPS if obj.get("kind") == "LimitRange" else set())
    return {name: _quantities(value, maps) if name == "spec" else value for name, value in obj.items()}


def _normalize_crd(obj: Object) -> Object:
    spec = dict(obj.get("spec") or {})
    if spec.get("preserveUnknownFields") is False:
        del spec["preserveUnknownFields"]
    return {**{name: value for name, value in obj.items() if name != "status"}, "spec": spec}


def _normalize_secret(obj: Object) -> Object:
    """Moves `stringData` to `data`, as the API server does."""
    data = {name: _reencode(value) for name, value in (obj.get("data") or {}).items()}
    for name, text in (obj.get("stringData") or {}).items():
        data[name] = base64.b64encode(str(text).encode()).decode()
    rest = {name: value for name, value in obj.items() if name not in ("data", "stringData")}
    return {**rest, "data": data} if data or "data" in obj else rest


def _reencode(value: Any) -> Any:
    try:
        return base64.b64encode(base64.b64decode(value, validate=False)).decode()
    except (binascii.Error, ValueError, TypeError):
        return value  # the API server's error is more specific


def _quantities(value: Any, maps: set[str]) -> Any:
    if isinstance(value, list):
        return [_quantities(item, maps) for item in value]
    if not isinstance(value, dict):
        return value
    result: Object = {}
    for name, item in value.items():
        if name in maps and isinstance(item, dict):
            result[name] = {key: canonical(amount) for key, amount in item.items()}
        elif name == "sizeLimit":
            result[name] = canonical(item)
        else:
            result[name] = _quantities(item, maps)
    return result
