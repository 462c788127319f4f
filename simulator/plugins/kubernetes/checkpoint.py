"""Pulumi's state of an object: the live object, its inputs, and its field manager."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Mapping
from typing import Any

from k8s.objects import Object
from simulator.plugins.marshal import Properties, Secret, has_secret, reveal

INPUTS, API_VERSION, FIELD_MANAGER = "__inputs", "__initialApiVersion", "__fieldManager"
# Attributes of SDK classes cannot contain dashes, so CRD schemas in the SDK have underscores.
_X_KUBERNETES = {
    name: name.replace("_", "-")
    for name in (
        "x_kubernetes_embedded_resource",
        "x_kubernetes_int_or_string",
        "x_kubernetes_list_map_keys",
        "x_kubernetes_list_type",
        "x_kubernetes_map_type",
        "x_kubernetes_preserve_unknown_fields",
        "x_kubernetes_validations",
    )
}
_DASHED = {dashed: name for name, dashed in _X_KUBERNETES.items()}


def to_object(properties: Mapping[str, Any]) -> Object:
    """Converts resource properties to a Kubernetes object. Reveals secrets, and keeps unknown values."""
    plain: Object = _rename(reveal(properties), _X_KUBERNETES)
    return plain


def to_properties(obj: Mapping[str, Any], given: Mapping[str, Any]) -> Properties:
    """Converts an object to resource properties. Marks the data of a Secret, and secrets of `given`, as secret."""
    properties: Properties = _rename(obj, _DASHED)
    _mark_secrets(properties, given)
    return properties


def checkpoint(inputs: Object, live: Object, given: Mapping[str, Any], manager: str, api_version: str) -> Properties:
    """Returns the state of an object. `given` are the engine's inputs, in which secrets are marked."""
    properties = to_properties(live, given)
    properties[INPUTS] = to_properties(inputs, given)
    properties[API_VERSION], properties[FIELD_MANAGER] = api_version, manager
    return properties


def parse(state: Mapping[str, Any]) -> tuple[Object, Object]:
    live = to_object(state)
    inputs = live.pop(INPUTS, None) or {}
    live.pop(API_VERSION, None)
    live.pop(FIELD_MANAGER, None)
    return inputs, live


def field_manager(state: Mapping[str, Any], inputs: Object) -> str:
    """Returns the field manager from the annotation, else from the previous state, else a new name."""
    annotations = (inputs.get("metadata") or {}).get("annotations")
    chosen = annotations.get("pulumi.com/patchFieldManager") if isinstance(annotations, dict) else None
    return str(chosen or state.get(FIELD_MANAGER) or f"pulumi-kubernetes-{uuid.uuid4().hex[:8]}")


def prune(live: Any, shape: Any, *, drops_empty: bool = False) -> Any:
    """Returns `live` without fields that `shape` lacks, such as the server's defaults and status.

    `drops_empty`: the API server omits empty fields (False, 0, "", [], {}) of this kind, so this adds fields that are
    empty in `shape` and missing in `live`.
    """
    if isinstance(live, dict) and isinstance(shape, dict):
        found = {name: prune(live[name], shape[name], drops_empty=drops_empty) for name in live if name in shape}
        empty = {name: value for name, value in shape.items() if drops_empty and name not in live and not value}
        return found | empty
    if isinstance(live, list) and isinstance(shape, list):
        return [prune(value, wanted, drops_empty=drops_empty) for value, wanted in zip(live, shape, strict=False)]
    return copy.deepcopy(live)


def _rename(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {names.get(name, name): _rename(item, names) for name, item in value.items()}
    if isinstance(value, list):
        return [_rename(item, names) for item in value]
    return value


def _mark_secrets(outputs: Properties, inputs: Mapping[str, Any]) -> None:
    """Marks a whole list or leaf as secret if its input contains a secret."""
    if outputs.get("kind") == "Secret":
        for name in {"data", "stringData"} & outputs.keys():
            outputs[name] = Secret(outputs[name])
        return
    for name, given in inputs.items():
        value = outputs.get(name)
        if isinstance(value, dict) and isinstance(given, Mapping):
            _mark_secrets(value, given)
        elif name in outputs and not isinstance(value, Secret) and has_secret(given):
            outputs[name] = Secret(value)
