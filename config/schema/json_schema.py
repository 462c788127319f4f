"""Reads a model's JSON schema: the schema at a path, and all paths."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from config.problems.fixes import Fix, Path, by_hand, in_file

Schema = Mapping[str, Any]


@functools.cache
def schema_of(model: type[BaseModel]) -> Schema:
    return model.model_json_schema(by_alias=True)


def schema_at(schema: Schema, location: Iterable[str | int]) -> Schema:
    """Returns the JSON schema at `location`; empty if the schema does not describe it."""
    definitions = schema.get("$defs", {})
    here = _resolved(schema, definitions)
    for part in location:
        if isinstance(part, int):
            here = here.get("items", {})
        else:
            named = here.get("properties", {}).get(part)
            here = (
                named or here.get("additionalProperties") or next(iter(here.get("patternProperties", {}).values()), {})
            )
        here = _resolved(here if isinstance(here, Mapping) else {}, definitions)
    return here


def paths_in(model: type[BaseModel], prefix: Path = ()) -> Iterator[Path]:
    """Yields the paths of all keys of a model; `*` stands for a name that the user chooses, as for a pool."""

    def below(path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        here = schema_at(schema_of(model), path)
        chosen = ("*",) if any(here.get(which) for which in ("additionalProperties", "patternProperties")) else ()
        for name in (*here.get("properties", {}), *chosen):
            yield (*path, name)
            yield from below((*path, name))

    return ((*prefix, *path) for path in below(()))


@functools.cache
def protecting(model: type[BaseModel]) -> Mapping[str, Path]:
    """Returns the name and shortest path of each setting that protects access or data."""
    schema, paths = schema_of(model), sorted(paths_in(model), key=len, reverse=True)
    return {str(path[-1]): path for path in paths if schema_at(schema, path).get("protects")}


def _resolved(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    outer = {key: schema[key] for key in ("allowed", "default", "examples", "protects") if key in schema}
    for option in schema.get("anyOf", ()):
        if option.get("type") != "null":
            return {**_resolved(option, definitions), **outer}
    if reference := schema.get("$ref"):
        return {**_resolved(definitions[reference.rpartition("/")[2]], definitions), **outer}
    return schema


def allowed(schema: Schema) -> str:
    if words := schema.get("allowed"):
        return str(words)
    if choices := schema.get("enum"):
        return ", ".join(map(str, choices))
    match schema.get("type"):
        case "integer":
            return "a whole number" + _bounds(schema)
        case "number":
            return f"a number above {schema['exclusiveMinimum']:g}" if "exclusiveMinimum" in schema else "a number"
        case "boolean":
            return "true or false"
        case "array":
            entry = schema.get("items", {}).get("allowed")
            return f"a list; each entry is {entry}" if entry else "a list, as in [a, b]"
        case "object":
            if is_text_table(schema):
                return 'a map of text, as in {NAME: "value"}'
            keys = ", ".join(schema.get("properties", {}))
            return f"a map with the keys {keys}" if keys else "a map"
        case "string":
            return "text"
        case _:
            return "a value"


def is_plain(schema: Schema) -> bool:
    return schema.get("type") in ("boolean", "integer", "number", "string")


def by_schema(path: Path, schema: Schema) -> Fix:
    return by_hand(path) if is_plain(schema) else in_file(path)


def entries_of(schema: Schema) -> list[Schema]:
    entries = [schema.get("additionalProperties"), *schema.get("patternProperties", {}).values()]
    return [each for each in entries if isinstance(each, Mapping)]


def is_text_table(schema: Schema) -> bool:
    return any(each.get("type") == "string" for each in entries_of(schema))


def _bounds(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f" from {low} to {high}"
    return f" of {low} or more" if low is not None else ""
