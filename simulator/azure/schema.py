"""ARM's schema of each resource type: properties, types, limits, defaults, read-only and immutable properties.

A type's data is in `types/<package>/schema.yaml`. Each field in this file is a JSON type's name, a list of allowed
strings, or a mapping with the keys of `Field`. `common` lists the type's fields that `_COMMON` defines.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from config.data import data
from simulator.azure import tags
from simulator.azure.errors import Problem
from simulator.host import similar

FOLDER = Path(__file__).resolve().parent / "types"
CONTAINER = "properties"
Kind = Literal["string", "integer", "number", "boolean", "array", "object", "map"]
_JSON: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "map": dict,
}


_READ_ONLY = {"type": "string", "read_only": True}
_COMMON: Mapping[str, Any] = dict.fromkeys(("id", "name", "type", "etag"), _READ_ONLY) | {
    "location": {"type": "string", "required": True},
    "tags": {"type": "map", "values": "string"},
}


def sdk_name(name: str) -> str:
    """Returns a nested property's name in Pulumi's SDKs: scanInterval for scan-interval."""
    first, *others = name.split("-")
    return first + "".join(map(str.capitalize, others))


class Field(BaseModel):
    """A property. `minimum` and `maximum` limit numbers, and lengths of strings and arrays."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    type: Kind = "object"
    enum: list[str] | None = None
    minimum: float | None = None
    maximum: float | None = None
    pattern: str | None = None
    hint: str = ""
    checked: bool = False
    """Whether these limits are also in Azure's specification, so that clients check them."""
    required: bool = False
    read_only: bool = False
    default: Any = None
    fields: dict[str, Field] = {}
    items: Field | None = None
    values: Field | None = None
    string_set: bool = False
    """Whether only the map's keys matter. In Pulumi's SDKs, the property is a list of the keys."""

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, data: Any) -> Any:
        if isinstance(data, str):
            return {"type": data}
        if isinstance(data, list):
            return {"type": "string", "enum": data}
        if isinstance(data, dict) and "ref" in data:
            return _reference(data["ref"])
        if isinstance(data, dict) and "child" in data:
            return _child(data["child"])
        return data

    @property
    def flat(self) -> Mapping[str, Field]:
        """The fields as in Pulumi's SDKs, with ARM's `properties` at the top level."""
        inner = self.fields[CONTAINER].fields if CONTAINER in self.fields else {}
        outer = {name: field for name, field in self.fields.items() if not inner or name != CONTAINER}
        return {sdk_name(name): field for name, field in {**outer, **inner}.items()}


class Sdk(BaseModel):
    """A type in Pulumi's azure-native. `path` is the ARM path with the SDK's parameter names."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    token: str
    path: str
    """The last parameter is the resource's name."""
    autoname: Literal["random", "copy", "uuid"]
    replaces: frozenset[str] = frozenset()
    """Properties (SDK paths) that the provider cannot update. A change replaces the resource."""
    maintained: frozenset[str] = frozenset()
    """Lists of children that can also be separate resources."""
    defaults: dict[str, bool | str] = {}
    """The values that the SDK sends for omitted top-level properties."""
    renamed: dict[str, str] = {}
    """ARM's property names by SDK name, if different."""
    flattens: bool = True
    """Whether the body's `properties` are top-level in the SDK."""


class Published(BaseModel):
    """The type in Microsoft's Python packages. `tests/contract/azure_models` compares it with this schema."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    package: str
    models: list[str]
    """The model of the response, and the model of the request if it differs."""
    request: str
    """The function in the package's `operations` that builds the request."""
    name: str
    """The parameter of the `request` function that takes the resource's name."""
    api_version: str = ""
    """The package's API version, if it differs from ours."""
    stricter: str = ""
    """Azure's rule for names that the function `request` does not check."""


class Schema(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    type: str
    api_versions: list[str]
    name: Field
    immutable: list[str] = []
    """Dotted paths that updates must not change."""
    sdk: Sdk
    published: Published
    body: Field

    def problems(self, body: Mapping[str, Any]) -> list[Problem]:
        """Returns all schema errors of a request's body. Allows read-only properties, because ARM ignores them."""
        return list(_check(body, self.body, "", f"{self.type} {self.api_versions[-1]}"))

    def name_problems(self, name: str) -> list[Problem]:
        return list(_check(name, self.name, "name", self.type))

    def complete(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the body with ARM's defaults, without read-only properties and nulls."""
        completed: dict[str, Any] = _complete(body, self.body)
        return completed

    def changed_immutables(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
        """Returns the immutable paths that differ. A path omitted from `new` keeps its value."""
        return [
            path for path in self.immutable if (value := lookup(new, path)) is not None and value != lookup(old, path)
        ]


def lookup(body: Mapping[str, Any], path: str) -> Any:
    """Returns the value at a dotted path, or None."""
    value: Any = body
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def merged(body: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the body with a PATCH (RFC 7396): null removes a property. Tags are replaced as a whole."""
    found = dict(body)
    for name, value in changes.items():
        if value is None:
            found.pop(name, None)
        elif isinstance(value, dict) and name != "tags":
            old = found.get(name)
            found[name] = merged(old if isinstance(old, dict) else {}, value)
        else:
            found[name] = value
    return found


@functools.cache
def packages() -> dict[str, Schema]:
    return {
        file.parent.name: Schema.model_validate(_data(file.parent.name))
        for file in sorted(FOLDER.glob("*/schema.yaml"))
    }


@functools.cache
def schemas() -> dict[str, Schema]:
    return {schema.type.lower(): schema for schema in packages().values()}


def _data(package: str) -> dict[str, Any]:
    found: dict[str, Any] = data.parsed((FOLDER / package / "schema.yaml").read_text())
    found["body"]["fields"] = {name: _COMMON[name] for name in found.pop("common")} | found["body"]["fields"]
    return found


def _reference(package: str) -> dict[str, Any]:
    """Returns the schema of another type's `properties` with a name added (for inline agent pools)."""
    source = _data(package)
    name = source["name"] | {"required": True, "checked": True}
    return {"type": "object", "fields": {"name": name} | source["body"]["fields"]["properties"]["fields"]}


def _child(package: str) -> dict[str, Any]:
    """Returns the schema of another type's body with a name added (for inline subnets)."""
    fields = _data(package)["body"]["fields"]
    return {"type": "object", "fields": fields | {"name": {"type": "string", "required": True}}}


def _check(value: Any, field: Field, path: str, what: str) -> Iterator[Problem]:
    if value is None or field.read_only:
        return
    if not _is_json(value, field.type):
        yield Problem(path, f"'{path}' must be of type {field.type}, not {type(value).__name__}.")
    elif field.type == "object":
        yield from _check_object(value, field, path, what)
    elif field.type == "map":
        yield from _check_map(value, field, path, what)
    elif field.type == "array":
        yield from _limits(value, field, path)
        for index, item in enumerate(value):
            if field.items:
                yield from _check_inner(item, field.items, f"{path}[{index}]", what)
    else:
        yield from _limits(value, field, path)


def _check_inner(value: Any, field: Field, path: str, what: str) -> Iterator[Problem]:
    """Checks an item of an array or map. Null is an error."""
    if value is None:
        yield Problem(path, f"'{path}' must be of type {field.type}, not null.")
    else:
        yield from _check(value, field, path, what)


def _is_json(value: Any, kind: Kind) -> bool:
    return isinstance(value, _JSON[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _check_object(value: Mapping[str, Any], field: Field, path: str, what: str) -> Iterator[Problem]:
    dot = f"{path}." if path else ""
    for name, item in value.items():
        if name in field.fields:
            yield from _check(item, field.fields[name], dot + name, what)
        else:
            hint = similar.hint(name, field.fields, dot)
            yield Problem(dot + name, f"The property '{dot}{name}' is not known to {what} (or not simulated).{hint}")
    for name, inner in field.fields.items():
        if inner.required and value.get(name) is None:
            yield Problem(dot + name, f"Required parameter '{dot}{name}' is missing (null).")


def _check_map(value: Mapping[str, Any], field: Field, path: str, what: str) -> Iterator[Problem]:
    """Checks a map. A map named `tags` must be valid as resource tags."""
    if path.rpartition(".")[2] == "tags":
        yield from tags.problems(what.partition(" ")[0], path, value)
    for key, item in value.items():
        if field.values:
            yield from _check_inner(item, field.values, f"{path}.{key}", what)


def _limits(value: Any, field: Field, path: str) -> Iterator[Problem]:
    if field.enum and value not in field.enum:
        allowed = ", ".join(field.enum)
        text = f"The value of parameter '{path}' is invalid (or not simulated): '{value}'. Allowed: {allowed}."
        yield Problem(path, text)
    if field.pattern and not re.fullmatch(field.pattern, value):
        yield Problem(path, f"The value of parameter '{path}' is invalid: '{value}'. {field.hint or field.pattern}")
    size = value if isinstance(value, (int, float)) else len(value)
    unit = "" if isinstance(value, (int, float)) else " long"
    if field.minimum is not None and size < field.minimum:
        yield Problem(path, f"The value of parameter '{path}' is {size}{unit}; the minimum is {field.minimum:g}.")
    if field.maximum is not None and size > field.maximum:
        yield Problem(path, f"The value of parameter '{path}' is {size}{unit}; the maximum is {field.maximum:g}.")


def _complete(value: Any, field: Field) -> Any:
    if field.type == "array" and field.items:
        return [_complete(item, field.items) for item in value]
    if field.type == "map" and field.values:
        return {key: _complete(item, field.values) for key, item in value.items()}
    if field.type != "object":
        return value
    completed: dict[str, Any] = {}
    for name, inner in field.fields.items():
        given = value.get(name)
        if inner.read_only:
            continue
        if given is not None:
            completed[name] = _complete(given, inner)
        elif inner.default is not None:
            completed[name] = copy.deepcopy(inner.default)
        elif inner.type == "object" and inner.fields and (filled := _complete({}, inner)):
            completed[name] = filled  # an omitted object still gets its inner defaults
    return completed
