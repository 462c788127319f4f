"""Check: chooses names and defaults, and validates the inputs."""

from __future__ import annotations

import hashlib
import math
import re
import secrets
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from simulator.azure.schema import Field
from simulator.host.similar import similar
from simulator.plugins.azure_native.resources import API_VERSION, CREATE_BEFORE_DELETE, Definition, of_urn
from simulator.plugins.marshal import UNKNOWN, Properties, decode, encode, without_nulls
from simulator.plugins.protocol import provider_pb2

Autonaming = provider_pb2.CheckRequest.AutonamingOptions
GroupLocation = Callable[[Any], Any]
"""Returns a resource group's location, UNKNOWN for an unknown name, or None if the group does not exist."""
_SUFFIX = 8


def check(
    request: provider_pb2.CheckRequest, location: str | None, group_location: GroupLocation
) -> provider_pb2.CheckResponse:
    definition = of_urn(request.urn)
    olds, news = without_nulls(decode(request.olds)), without_nulls(decode(request.news))
    _name(definition, request, olds, news)
    if "location" in definition.inputs and "location" not in news:
        default = olds.get("location") or location or group_location(news.get("resourceGroupName"))
        if default is not None:
            news["location"] = default
    news.setdefault(API_VERSION, definition.api_version)
    failures = [provider_pb2.CheckFailure(reason=reason) for reason in _problems(definition, news)]
    return provider_pb2.CheckResponse(inputs=encode(news), failures=failures)


def _name(definition: Definition, request: provider_pb2.CheckRequest, olds: Properties, news: Properties) -> None:
    if definition.name in news:
        return
    if definition.name in olds:
        news[definition.name] = olds[definition.name]
        if olds.get(CREATE_BEFORE_DELETE):
            news[CREATE_BEFORE_DELETE] = True
        return
    settings = request.autonaming if request.HasField("autonaming") else None
    if settings is not None and settings.mode == Autonaming.DISABLE:
        return
    logical = request.urn.rpartition("::")[2]
    if settings is not None and (settings.mode == Autonaming.ENFORCE or definition.sdk.autoname != "uuid"):
        name, is_random = settings.proposed_name, True
    elif definition.sdk.autoname == "uuid":
        name, is_random = str(uuid.UUID(_hex(request.randomSeed, request.urn, 32))), True
    elif definition.sdk.autoname == "random":
        name, is_random = logical + _hex(request.randomSeed, request.urn, _SUFFIX), True
    else:
        name, is_random = logical, False
    news[definition.name] = name
    if is_random:
        news[CREATE_BEFORE_DELETE] = True


def _hex(seed: bytes, urn: str, digits: int) -> str:
    """Returns hex digits, which are the same in preview and update if the engine gives a seed."""
    return hashlib.sha256(seed + urn.encode()).hexdigest()[:digits] if seed else secrets.token_hex(digits // 2)


def _problems(definition: Definition, news: Mapping[str, Any]) -> Iterator[str]:
    for name in definition.parameters:
        if name not in news:
            yield _missing(name)
        elif name == definition.name:
            checked = not definition.schema.published.stricter
            yield from _check(news[name], definition.schema.name.model_copy(update={"checked": checked}), name)
        else:
            yield from _check(news[name], Field(type="string", minimum=1, checked=True), name)
    fields = {name: field for name, field in definition.inputs.items() if name not in definition.parameters}
    own = {*definition.parameters, API_VERSION, CREATE_BEFORE_DELETE}
    given = {name: value for name, value in news.items() if name not in own}
    yield from _check_object(given, fields, "", {*fields, *definition.parameters})


def _check_object(value: Mapping[str, Any], fields: Mapping[str, Field], path: str, known: set[str]) -> Iterator[str]:
    dot = f"{path}." if path else ""
    for name, item in value.items():
        field = fields.get(name)
        if field is None or field.read_only:
            also = similar(name, known)
            hint = f"; did you mean {' or '.join(repr(dot + other) for other in also)}?" if also else ""
            yield f"unknown property '{dot}{name}' (or not simulated){hint}"
        else:
            yield from _check(item, field, dot + name)
    for name, field in fields.items():
        if field.required and name not in value:
            yield _missing(dot + name)


def _missing(path: str) -> str:
    text = f"missing required property '{path}'"
    if path == "location":
        text += ". Either set it explicitly or configure it with 'pulumi config set azure-native:location <value>'."
    return text


def _check(value: Any, field: Field, path: str) -> Iterator[str]:
    if value is UNKNOWN or value is None:
        return
    elif isinstance(value, Mapping) and field.type == "object":
        yield from _check_object(value, field.flat, path, set(field.flat))
    elif isinstance(value, Mapping) and field.type == "map" and not field.string_set:
        for name, item in value.items():
            if field.values:
                yield from _check(item, field.values, f"{path}.{name}")
    elif isinstance(value, list) and (field.type == "array" or field.string_set):
        for index, item in enumerate(value):
            if field.items:
                yield from _check(item, field.items, f"{path}[{index}]")
    else:
        yield from _check_scalar(value, field, path)


def _check_scalar(value: Any, field: Field, path: str) -> Iterator[str]:
    kind = "number" if field.type in ("integer", "number") else field.type
    got = _kind(value)
    if got != kind:
        article = "an" if got[0] in "ao" else "a"
        yield f"'{path}' should be of type '{field.type}' but got {article} {got}"
    elif got == "number" and field.type == "integer" and not math.isclose(value, round(value)):
        yield f"'{path}' must be an integer but got {value:f}"
    if got == kind and field.checked:
        yield from _check_limits(value, field, path)


def _check_limits(value: Any, field: Field, path: str) -> Iterator[str]:
    if isinstance(value, str):
        if field.minimum is not None and len(value) < field.minimum:
            yield f"'{path}' is too short ({len(value)}): at least {field.minimum:g} characters required"
        if field.maximum is not None and len(value) > field.maximum:
            yield f"'{path}' is too long ({len(value)}): at most {field.maximum:g} characters allowed"
        if field.pattern and not re.fullmatch(field.pattern, value):
            yield f"'{path}' does not match expression '^{field.pattern}$'"
        return
    if field.minimum is not None and value < field.minimum:
        yield f"'{path}' is too low ({value:f} < {field.minimum:f})"
    if field.maximum is not None and value > field.maximum:
        yield f"'{path}' is too high ({value:f} > {field.maximum:f})"


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"
