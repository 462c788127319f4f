"""Azure's published models of its resources, read from the azure-mgmt packages, in the shape of our own schemas.

Which package has a type, its room says (`published` in simulator/azure/types/<room>/schema.yaml).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from simulator.azure.schema import Field, schemas

_JSON = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "object": "object"}
_KNOWN_VALUES = re.compile(r"Known values are:\s*(.*?)\.(?:\s|$)", re.DOTALL)
_BOUNDS = ("minimum", "maximum", "pattern", "min_items", "max_items")
_TEXT = {"iso-8601", "date", "duration", "bytearray"}


@dataclass(frozen=True)
class Published:
    """One property as Azure publishes it."""

    path: str
    type: str
    """A JSON type, or `map`."""
    read_only: bool
    required: bool
    known: frozenset[str]
    """Values of an enumeration; empty where it is none."""
    bounds: Mapping[str, Any] = field(default_factory=dict)
    """Of minimum, maximum, pattern, min_items and max_items those that it has."""


def published(resource_type: str) -> dict[str, Published]:
    """Every property of the type by its dotted path; `[]` stands for the items of an array, `{}` for a map's values."""
    source = schemas()[resource_type.lower()].published
    module = importlib.import_module(f"{source.package}.models")
    found: dict[str, Published] = {}
    for name in source.models:
        for each in _properties(module, getattr(module, name), "", ()):
            other = found.get(each.path)
            found[each.path] = each if other is None or not each.read_only else other
    return found


def unpublished(resource_type: str, body: Any) -> list[str]:
    """Paths and types in an answer of simulated ARM that Azure's model does not have."""
    known = published(resource_type)

    def walk(value: Any, path: str) -> Iterator[str]:
        if path and path not in known:
            yield f"{path} is not published"
        elif path and value is not None and known[path].type not in (_json(value), "object"):
            yield f"{path} is a {_json(value)}, published as {known[path].type}"
        elif isinstance(value, dict):
            mapped = bool(path) and known[path].type == "map"
            for key, item in value.items():
                yield from walk(item, f"{path}{{}}" if mapped else f"{path}.{key}".lstrip("."))
        elif isinstance(value, list):
            for item in value:
                yield from walk(item, f"{path}[]")

    return list(walk(body, ""))


def _json(value: Any) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "map"}
    return kinds[type(value)]


def ours(schema: Field, path: str = "") -> Iterator[tuple[str, Field]]:
    """Every property of one of our schemas, by paths of the same kind."""
    if path:
        yield path, schema
    dot = f"{path}." if path else ""
    for name, inner in schema.fields.items():
        yield from ours(inner, dot + name)
    if schema.items:
        yield from ours(schema.items, f"{path}[]")
    if schema.values:
        yield from ours(schema.values, f"{path}{{}}")


def _properties(module: ModuleType, model: Any, path: str, seen: tuple[str, ...]) -> Iterator[Published]:
    if model.__name__ in seen:  # errors hold errors
        return
    described = _known_values(model)
    for attribute, entry in model._attribute_map.items():
        rules = model._validation.get(attribute, {})
        *around, last = [part.replace("\\.", ".") for part in re.split(r"(?<!\\)\.", entry["key"])]
        for depth in range(len(around)):  # `properties`, which the packages flatten
            part = ".".join(filter(None, [path, *around[: depth + 1]]))
            yield Published(part, "object", read_only=False, required=False, known=frozenset())
        where = ".".join(filter(None, [path, *around, last]))
        yield from _typed(
            module, entry["type"], where, rules, described.get(attribute, frozenset()), (*seen, model.__name__)
        )


def _typed(
    module: ModuleType, kind: str, path: str, rules: dict[str, Any], known: frozenset[str], seen: tuple[str, ...]
) -> Iterator[Published]:
    flags: dict[str, Any] = {"read_only": bool(rules.get("readonly")), "required": bool(rules.get("required"))}
    flags["bounds"] = {name: rules[name] for name in _BOUNDS if name in rules}
    if kind.startswith("["):
        yield Published(path, "array", known=frozenset(), **flags)
        yield from _typed(module, kind[1:-1], f"{path}[]", {}, known, seen)
    elif kind.startswith("{"):
        yield Published(path, "map", known=frozenset(), **flags)
        yield from _typed(module, kind[1:-1], f"{path}{{}}", {}, known, seen)
    elif kind in _JSON or kind in _TEXT:
        yield Published(path, _JSON.get(kind, "string"), known=known, **flags)
    else:
        yield Published(path, "object", known=frozenset(), **flags)
        yield from _properties(module, getattr(module, kind), path, seen)


def _known_values(model: Any) -> dict[str, frozenset[str]]:
    """The values of enumerations, which the packages name in docstrings only."""
    parts = re.split(r":ivar (\w+):", model.__doc__ or "")
    found = {}
    for name, text in zip(parts[1::2], parts[2::2], strict=False):
        if match := _KNOWN_VALUES.search(text):
            found[name] = frozenset(re.findall(r'"([^"]+)"', match[1]))
    return found
