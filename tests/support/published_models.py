"""Azure's published resource models from the azure-mgmt packages, in the form of our schemas.

`published` in simulator/azure/types/<type>/schema.yaml names a type's package. Models are recursive (subnets have
endpoints, which have subnets), so only requested paths are read.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from simulator.azure.schema import Field, schemas

_JSON = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "object": "object"}
_KNOWN_VALUES = re.compile(r"Known values are:\s*(.*?)\.(?:\s|$)", re.DOTALL)
_BOUNDS = ("minimum", "maximum", "pattern", "min_items", "max_items")
_TEXT = {"iso-8601", "date", "duration", "bytearray"}
_STEP = re.compile(r"\[\]|\{\}|[^.\[{]+")


@dataclass(frozen=True)
class Published:
    type: str
    """A JSON type, or `map`."""
    read_only: bool = False
    required: bool = False
    known: frozenset[str] = frozenset()
    """Empty if it is not an enumeration."""
    bounds: Mapping[str, Any] = field(default_factory=dict)
    """Values of minimum, maximum, pattern, min_items and max_items."""
    module: str = ""
    of: str = ""
    """An object's model, or the item type of an array or map, as the packages write types."""
    inner: Mapping[str, Published] = field(default_factory=dict)
    """Properties of an object without a model: `properties`, which the packages flatten."""


@dataclass(frozen=True)
class Models:
    tops: tuple[Published, ...]

    def get(self, path: str) -> Published | None:
        """`[]` in a path stands for an array's items, `{}` for a map's values."""
        found = None
        for top in self.tops:
            each: Published | None = top
            for step in _STEP.findall(path):
                each = _inside(each, step) if each else None
            if each and (found is None or not each.read_only):
                found = each
        return found


def published(resource_type: str) -> Models:
    source = schemas()[resource_type.lower()].published
    module = f"{source.package}.models"
    return Models(tuple(Published("object", module=module, of=name) for name in source.models))


def unpublished(resource_type: str, body: Any) -> list[str]:
    """Returns paths and types of a simulated answer that Azure's model does not have."""
    models = published(resource_type)

    def walk(value: Any, path: str) -> Iterator[str]:
        known = models.get(path)
        if known is None:
            yield f"{path} is not published"
        elif path and value is not None and known.type not in (_json(value), "object"):
            yield f"{path} is a {_json(value)}, published as {known.type}"
        elif isinstance(value, dict):
            for key, item in value.items():
                yield from walk(item, f"{path}{{}}" if known.type == "map" else f"{path}.{key}".lstrip("."))
        elif isinstance(value, list):
            for item in value:
                yield from walk(item, f"{path}[]")

    return list(walk(body, ""))


def _json(value: Any) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "map"}
    return kinds[type(value)]


def ours(schema: Field, path: str = "") -> Iterator[tuple[str, Field]]:
    if path:
        yield path, schema
    dot = f"{path}." if path else ""
    for name, inner in schema.fields.items():
        yield from ours(inner, dot + name)
    if schema.items:
        yield from ours(schema.items, f"{path}[]")
    if schema.values:
        yield from ours(schema.values, f"{path}{{}}")


def _inside(of: Published, step: str) -> Published | None:
    if step in ("[]", "{}"):
        wanted = "array" if step == "[]" else "map"
        return _typed(of.module, of.of, known=of.known) if of.type == wanted else None
    if of.inner:
        return of.inner.get(step)
    return _properties(of.module, of.of).get(step) if of.type == "object" and of.of else None


@functools.cache
def _properties(module: str, name: str) -> Mapping[str, Published]:
    model = getattr(importlib.import_module(module), name)
    described = _known_values(model)
    found: dict[str, Published] = {}
    for attribute, entry in model._attribute_map.items():
        rules = model._validation.get(attribute, {})
        *around, last = [part.replace("\\.", ".") for part in re.split(r"(?<!\\)\.", entry["key"])]
        typed = _typed(module, entry["type"], known=described.get(attribute, frozenset()), rules=rules)
        for part in reversed(around):
            typed, last = Published("object", inner={last: typed}), part
        before = found.get(last)
        found[last] = replace(before, inner=_merged(before.inner, typed.inner)) if before else typed
    return found


def _merged(old: Mapping[str, Published], new: Mapping[str, Published]) -> Mapping[str, Published]:
    both = {
        name: replace(old[name], inner=_merged(old[name].inner, new[name].inner)) for name in old.keys() & new.keys()
    }
    return {**old, **new, **both}


def _typed(module: str, kind: str, *, known: frozenset[str], rules: Mapping[str, Any] | None = None) -> Published:
    rules = rules or {}
    bare = Published(
        "object",
        read_only=bool(rules.get("readonly")),
        required=bool(rules.get("required")),
        bounds={name: rules[name] for name in _BOUNDS if name in rules},
        module=module,
    )
    if kind.startswith(("[", "{")):
        return replace(bare, type="array" if kind.startswith("[") else "map", of=kind[1:-1], known=known)
    if kind in _JSON or kind in _TEXT:
        return replace(bare, type=_JSON.get(kind, "string"), known=known)
    return replace(bare, of=kind)


def _known_values(model: Any) -> dict[str, frozenset[str]]:
    """The packages list enumerations' values only in docstrings."""
    parts = re.split(r":ivar (\w+):", model.__doc__ or "")
    found = {}
    for name, text in zip(parts[1::2], parts[2::2], strict=False):
        if match := _KNOWN_VALUES.search(text):
            found[name] = frozenset(re.findall(r'"([^"]+)"', match[1]))
    return found
