"""Converts resources between the forms of the Pulumi SDK and of ARM."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from simulator.azure.schema import CONTAINER, Field, sdk_name
from simulator.plugins.azure_native.resources import API_VERSION, CREATE_BEFORE_DELETE, Definition
from simulator.plugins.errors import PluginError
from simulator.plugins.marshal import UNKNOWN, Properties, without_nulls


def path(definition: Definition, inputs: Mapping[str, Any], subscription: str) -> str:
    values = {name: str(inputs[name]).strip("/") for name in definition.parameters}
    return definition.sdk.path.format(subscriptionId=subscription, **values)


def body(definition: Definition, inputs: Mapping[str, Any], previous: Mapping[str, Any]) -> Properties:
    """Returns the body of the request, nested under `properties` as ARM requires."""
    sent: Properties = {"properties": {}} if definition.sdk.flattens else {}
    for name, field in definition.inputs.items():
        if name in inputs and name not in definition.parameters:
            container = sent["properties"] if definition.in_container(name) else sent
            container[definition.arm_name(name)] = _to_body(inputs[name], field, previous.get(name))
    return sent


def outputs(definition: Definition, response: Mapping[str, Any]) -> Properties:
    inner = response.get("properties") or {} if definition.sdk.flattens else {}
    found = {
        **inner,
        **{name: value for name, value in response.items() if not (definition.sdk.flattens and name == "properties")},
    }
    found = {definition.sdk_name(name): value for name, value in found.items()}
    known = definition.outputs
    shown: Properties = without_nulls({name: _flat(found[name], known[name]) for name in found if name in known})
    return shown | {API_VERSION: definition.api_version}


def preview(definition: Definition, inputs: Mapping[str, Any]) -> Properties:
    """Returns the outputs for a preview: the inputs, and UNKNOWN for all other properties."""
    shown = {name: _preview(inputs.get(name, UNKNOWN), field) for name, field in definition.outputs.items()}
    return shown | {API_VERSION: definition.api_version}


def inputs_of(definition: Definition, shown: Mapping[str, Any]) -> Properties:
    """Returns the outputs that a program could have set, without read-only properties at any depth."""
    collides = {name for name in ("type", "name") if name in definition.schema.body.fields}
    fields = {name: field for name, field in definition.inputs.items() if name not in collides}
    return {name: _to_input(shown[name], field) for name, field in fields.items() if name in shown}


def imported(definition: Definition, resource_id: str, shown: Mapping[str, Any]) -> Properties:
    """Returns inputs that would create an existing resource, without empty collections at any depth."""
    given: Properties = _without_empty(inputs_of(definition, shown)) or {}
    return given | _parameters(definition, resource_id)


def refreshed(
    definition: Definition, inputs: Mapping[str, Any], before: Mapping[str, Any], now: Mapping[str, Any]
) -> Properties:
    """Returns `inputs` with the changes from the read `before` to the read `now`, without values that ARM filled in.

    Omits children that a program may manage as separate resources, unless the inputs define them inline.
    """
    children = definition.sdk.maintained - inputs.keys()
    old, new = inputs_of(definition, before), inputs_of(definition, now)
    new = {name: value for name, value in new.items() if name not in children}
    own = {name: inputs[name] for name in (API_VERSION, CREATE_BEFORE_DELETE) if name in inputs}
    merged: Properties = _merge(dict(inputs), old, new)
    return merged | own


def _parameters(definition: Definition, resource_id: str) -> Properties:
    """Returns the parameters in an id. Ignores the case of its fixed parts (provider/pkg/resources/ids.go)."""
    parts = [f"(?P<{part[1:-1]}>.*?)" if part.startswith("{") else part for part in definition.sdk.path.split("/")]
    found = re.fullmatch("/".join(parts), resource_id, re.IGNORECASE)
    if found is None:
        raise PluginError(f"failed to parse '{resource_id}' against the path '{definition.sdk.path}'")
    return {name: value for name, value in found.groupdict().items() if name != "subscriptionId"}


def _to_body(value: Any, field: Field, previous: Any = None) -> Any:
    """Sends null for a removed entry of a string set (pulumi-azure-native#4640)."""
    if field.string_set and isinstance(value, list):
        gone = [name for name in previous if name not in value] if isinstance(previous, list) else []
        return {**{name: {} for name in value}, **dict.fromkeys(gone)}
    if field.type == "array" and field.items and isinstance(value, list):
        return [_to_body(item, field.items) for item in value]
    if field.type == "map" and field.values and isinstance(value, Mapping):
        return {name: _to_body(item, field.values) for name, item in value.items()}
    if field.type == "object" and isinstance(value, Mapping):
        return _object_body(value, field, previous if isinstance(previous, Mapping) else {})
    return value


def _object_body(value: Mapping[str, Any], field: Field, previous: Mapping[str, Any]) -> Properties:
    inner = field.fields[CONTAINER].fields if CONTAINER in field.fields else {}
    known, names = field.flat, {sdk_name(name): name for name in (*field.fields, *inner)}
    sent = {
        names.get(name, name): _to_body(item, known.get(name, field), previous.get(name))
        for name, item in value.items()
    }
    outer: Properties = {name: item for name, item in sent.items() if name not in inner}
    return outer | ({CONTAINER: {name: sent[name] for name in inner if name in sent}} if inner else {})


def _flat(value: Any, field: Field) -> Any:
    if field.type == "array" and field.items and isinstance(value, list):
        return [_flat(item, field.items) for item in value]
    if field.type == "object" and field.fields and isinstance(value, Mapping):
        inner = value.get(CONTAINER) or {} if CONTAINER in field.fields else {}
        merged = {**inner, **{name: item for name, item in value.items() if not inner or name != CONTAINER}}
        known = field.flat
        named = {sdk_name(name): item for name, item in merged.items()}
        return {name: _flat(item, known[name]) if name in known else item for name, item in named.items()}
    return value


def _to_input(value: Any, field: Field) -> Any:
    if field.string_set and isinstance(value, Mapping):
        return sorted(value)
    if field.type == "array" and field.items and isinstance(value, list):
        return [_to_input(item, field.items) for item in value]
    if field.type == "object" and isinstance(value, Mapping):
        writable = {name: inner for name, inner in field.flat.items() if not inner.read_only}
        return {name: _to_input(value[name], inner) for name, inner in writable.items() if name in value}
    return value


def _without_empty(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_empty(item) for name, item in value.items() if _without_empty(item) is not None} or None
    if isinstance(value, list):
        return [_without_empty(item) for item in value if _without_empty(item) is not None] or None
    return value


def _preview(value: Any, field: Field) -> Any:
    if field.string_set or value is UNKNOWN:
        return UNKNOWN
    if field.type == "object" and field.fields and isinstance(value, Mapping):
        return {name: _preview(value.get(name, UNKNOWN), inner) for name, inner in field.flat.items()}
    if field.type == "array" and field.items and isinstance(value, list):
        return [_preview(item, field.items) for item in value]
    return value


def _merge(value: Any, old: Any, new: Any) -> Any:
    if old == new:
        return value
    if isinstance(value, dict) and isinstance(old, dict) and isinstance(new, dict):
        merged = {name: item for name, item in value.items() if name in new or name not in old}
        for name in new:
            if old.get(name) != new[name]:
                merged[name] = _merge(value[name], old.get(name), new[name]) if name in value else new[name]
        return merged
    if isinstance(value, list) and isinstance(old, list) and isinstance(new, list):
        shared = min(len(value), len(old))
        return [_merge(value[i], old[i], item) if i < shared else item for i, item in enumerate(new)]
    return new
