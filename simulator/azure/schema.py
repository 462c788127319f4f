"""What ARM knows of each resource type: properties, types, limits, defaults, what is read-only, what never changes.

The data is in `types/<room>/schema.yaml`, one for each type. There, a field is written as the name of a JSON type, as
a list of the strings that it may be, or as a mapping with the keys of `Field`.
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


def sdk_name(name: str) -> str:
    """A nested property as Pulumi's SDKs call it: scan-interval is scanInterval."""
    first, *others = name.split("-")
    return first + "".join(map(str.capitalize, others))


class Field(BaseModel):
    """One property. `minimum`/`maximum` bound numbers, and the length of strings and arrays."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    type: Kind = "object"
    enum: list[str] | None = None
    minimum: float | None = None
    maximum: float | None = None
    pattern: str | None = None
    hint: str = ""
    """What the pattern asks for, in words."""
    checked: bool = False
    """Whether these limits are in Azure's specification, so that a client refuses what breaks them."""
    required: bool = False
    read_only: bool = False
    default: Any = None
    """What ARM fills in when the property is left out."""
    fields: dict[str, Field] = {}
    items: Field | None = None
    values: Field | None = None
    """Of a map: what its values are."""
    string_set: bool = False
    """A map of which only the keys matter; Pulumi's SDKs write it as a list of them."""

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
        """Its fields as Pulumi's SDKs have them: what ARM has under `properties` stands beside the rest."""
        inner = self.fields[CONTAINER].fields if CONTAINER in self.fields else {}
        outer = {name: field for name, field in self.fields.items() if not inner or name != CONTAINER}
        return {sdk_name(name): field for name, field in {**outer, **inner}.items()}


class Sdk(BaseModel):
    """What Pulumi's azure-native makes of a type. `path` is ARM's, with the SDK's names of its parameters."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    token: str
    path: str
    """The last of its parameters is the resource's name."""
    autoname: Literal["random", "copy", "uuid"]
    replaces: frozenset[str] = frozenset()
    """Properties, by their paths in the SDK's shape, that cannot be updated in the provider's opinion."""
    maintained: frozenset[str] = frozenset()
    """Lists of children that may be resources of their own."""
    defaults: dict[str, bool | str] = {}
    """Of properties at the top, what the SDK sends where a program leaves them out."""
    renamed: dict[str, str] = {}
    """Properties that the SDK calls otherwise than ARM does: its name, and ARM's."""
    flattens: bool = True
    """Whether `properties` of the ARM body are top-level in the SDK."""


class Published(BaseModel):
    """Where Microsoft's Python packages have the type: `tests/contract/azure_models` holds ours to it."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    package: str
    models: list[str]
    """Of the answer, and of the request where that has one of its own."""
    request: str
    """The function that builds the request, below the package's `operations`."""
    name: str
    """That function's parameter with the resource's name."""
    api_version: str = ""
    """Where it is another one than ours."""
    stricter: str = ""
    """How Azure's documentation restricts names further than the request does."""


class Schema(BaseModel):
    """One resource type."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    type: str
    api_versions: list[str]
    name: Field
    immutable: list[str] = []
    """Dotted paths that an update must not change."""
    sdk: Sdk
    published: Published
    body: Field

    def problems(self, body: Mapping[str, Any]) -> list[Problem]:
        """Everything wrong with the shape of a request's body. Read-only properties are allowed: ARM ignores them."""
        return list(_check(body, self.body, "", f"{self.type} {self.api_versions[-1]}"))

    def name_problems(self, name: str) -> list[Problem]:
        """Why ARM refuses the name for a new resource."""
        return list(_check(name, self.name, "name", self.type))

    def complete(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body without read-only properties and nulls, with the defaults that ARM fills in."""
        completed: dict[str, Any] = _complete(body, self.body)
        return completed

    def changed_immutables(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
        """Paths that never change and that differ; one left out of `new` keeps its value and does not count."""
        return [
            path for path in self.immutable if (value := lookup(new, path)) is not None and value != lookup(old, path)
        ]


def lookup(body: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path, None where there is none."""
    value: Any = body
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def merged(body: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the body with the changes of a PATCH (RFC 7396): null takes a property out. Tags are replaced whole."""
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
def rooms() -> dict[str, Schema]:
    """All resource types by the folders that they live in."""
    return {
        file.parent.name: Schema.model_validate(_data(file.parent.name))
        for file in sorted(FOLDER.glob("*/schema.yaml"))
    }


@functools.cache
def schemas() -> dict[str, Schema]:
    """All resource types by their name in lower case."""
    return {schema.type.lower(): schema for schema in rooms().values()}


def _data(room: str) -> dict[str, Any]:
    found: dict[str, Any] = data.parsed((FOLDER / room / "schema.yaml").read_text())
    return found


def _reference(room: str) -> dict[str, Any]:
    """The `properties` of another room's type, with the resource's name among them (an inline agent pool)."""
    source = _data(room)
    name = source["name"] | {"required": True, "checked": True}
    return {"type": "object", "fields": {"name": name} | source["body"]["fields"]["properties"]["fields"]}


def _child(room: str) -> dict[str, Any]:
    """Another room's type as it stands inline in its parent, by its name (a subnet)."""
    fields = _data(room)["body"]["fields"]
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
    """What is in an array or a map: there null leaves nothing out."""
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
    """A map called `tags` holds the tags of a resource, whatever its type."""
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
        yield Problem(path, f"The value of parameter '{path}' is {size}{unit}; the least is {field.minimum:g}.")
    if field.maximum is not None and size > field.maximum:
        yield Problem(path, f"The value of parameter '{path}' is {size}{unit}; the most is {field.maximum:g}.")


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
            completed[name] = filled  # an object that is left out still gets the defaults inside it
    return completed
