"""Turns what pydantic finds wrong into problems: the key, what may stand there, the command that mends it."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from config.facts.near import hint, meant
from config.problems.errors import Problem
from config.problems.fixes import (
    Edit,
    Fix,
    Path,
    by_hand,
    move_command,
    path_text,
    remove_command,
    say,
    set_command,
    text_of,
)
from config.schema.base import UNFIT, Unfit

Schema = Mapping[str, Any]
MAX_SHOWN = 80
_MAX_SPREAD = 5
"""Entries of a list that commands set; more are set by hand."""
_SUCCEEDED: Mapping[Path, Path] = {("operators", "networkOperator", "drainOnUpgrade"): ("operators", "driverUpgrades")}
"""Keys that an earlier version had, and what has taken their place."""


def problems_of(
    errors: Iterable[ErrorDetails], model: type[BaseModel], given: Mapping[str, Any], prefix: Path = ()
) -> Iterator[Problem]:
    """Problems for the errors of one validation of `given` as a `model`; `prefix` is where its keys hang."""
    schema = schema_of(model)
    for error in errors:
        location = place(error)
        path = (*prefix, *location)
        fix: Fix
        if location != error["loc"]:
            rule = schema_at(schema, location[:-1]).get("propertyNames", {})
            fix = say(f"rename the key {location[-1]} under {path_text(path[:-1])} in the stack file")
            yield Problem(path, "is not a name that can stand there", str(rule.get("allowed", "another")), fix)
        elif error["type"] == "extra_forbidden":
            parent = schema_at(schema, location[:-1])
            yield unknown_key(path, parent.get("properties", {}), error["input"], _at(given, location[:-1]))
        elif error["type"] == "missing":
            here = schema_at(schema, location)
            value = example(here)
            fix = by_hand(path) if value is None else set_command(path, value)
            yield Problem(path, "is not set", allowed(here), fix, shows_value=False)
        elif error["type"] == UNFIT:
            yield from (_unfit(fault, schema, location, prefix, error["input"]) for fault in error["ctx"]["faults"])
        else:
            here, given_here = schema_at(schema, location), error["input"]
            what, plain = f"is {_shown(given_here)}", not isinstance(given_here, dict | list | None)
            yield Problem(path, what, allowed(here), _mend(path, here, given_here), shows_value=plain)


def _unfit(fault: Unfit, schema: Schema, location: Path, prefix: Path, given: object) -> Problem:
    """What a validator of ours has found below a location, where `given` stands."""
    below = (*location, *fault.below)
    path, instead = (*prefix, *below), fault.instead if isinstance(fault.instead, list) else [fault.instead]
    if fault.known:
        beside = _at(given, fault.below[:-1])
        return unknown_key(path, fault.known, beside[fault.below[-1]], beside, fault.what)
    fix, *others = (remove_command(path) if each is None else set_command(path, each) for each in instead)
    return Problem(path, fault.what, fault.allowed or allowed(schema_at(schema, below)), fix, others=tuple(others))


def _at(data: Any, path: Path) -> Any:
    return functools.reduce(lambda here, part: here[part], path, data)


@functools.cache
def schema_of(model: type[BaseModel]) -> Schema:
    """The JSON schema of a model, by the names that stack files use."""
    return model.model_json_schema(by_alias=True)


def place(error: ErrorDetails) -> Path:
    """Where an error is: that of a key itself, which pydantic marks so, is at the key."""
    location = error["loc"]
    return location[:-1] if location[-1:] == ("[key]",) else location


def unknown_key(
    path: Path, known: Iterable[str], value: object, beside: Collection[str] = (), what: str = "is an unknown key"
) -> Problem:
    """The problem of a key that nobody reads; `known` are those that may stand there, those `beside` it are set.

    A top-level key may have its namespace before it, which those are without.
    """
    known = sorted(known)
    namespace, colon, name = str(path[-1]).rpartition(":") if len(path) == 1 else ("", "", str(path[-1]))
    likely = meant(name, known)
    move = likely and likely[0] not in beside
    fix = move_command(path, (*path[:-1], namespace + colon + likely[0]), value) if move else remove_command(path)
    successor = _SUCCEEDED.get(path)
    what += f"; in its place: {path_text(successor)}" if successor else hint(likely)
    return Problem(path, what, ", ".join(known) or "no keys at all", fix, shows_value=False)


def schema_at(schema: Schema, location: Iterable[str | int]) -> Schema:
    """The JSON schema of what stands at `location`; empty where the schema says nothing."""
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
    """All keys of a model; `*` stands for names that users choose (a pool's)."""

    def below(path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        here = schema_at(schema_of(model), path)
        chosen = ("*",) if any(here.get(which) for which in ("additionalProperties", "patternProperties")) else ()
        for name in (*here.get("properties", {}), *chosen):
            yield (*path, name)
            yield from below((*path, name))

    return ((*prefix, *path) for path in below(()))


def _resolved(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Follows a reference, and takes what is not null of an optional value; keeps default and examples beside it."""
    outer = {key: schema[key] for key in ("default", "examples", "protects") if key in schema}
    for option in schema.get("anyOf", ()):
        if option.get("type") != "null":
            return {**_resolved(option, definitions), **outer}
    if reference := schema.get("$ref"):
        return {**_resolved(definitions[reference.rpartition("/")[2]], definitions), **outer}
    return schema


def allowed(schema: Schema) -> str:
    """What may stand where the schema holds, in words."""
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
            return "a list, as in [a, b]"
        case "object":
            keys = ", ".join(schema.get("properties", {}))
            return f"a map with the keys {keys}" if keys else "a map"
        case "string":
            return str(schema.get("allowed", "text"))
        case _:
            return "a value"


def _bounds(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f" from {low} to {high}"
    return f" of {low} or more" if low is not None else ""


def _mend(path: Path, schema: Schema, given: object) -> Fix:
    choices = schema.get("enum", ()) if isinstance(given, str) else ()
    likely = meant(str(given), choices)
    if len(likely) == 1 or (likely and not isinstance(path[-1], int)):  # one entry of a list is as likely as the next
        return set_command(path, likely[0])
    if spread := _spread(path, schema, given):
        return spread
    value = None if schema.get("type") in {"object", "array"} else _most(schema, str(given)) or example(schema)
    return remove_command(path) if value is None or isinstance(path[-1], int) else set_command(path, value)


def _spread(path: Path, schema: Schema, given: object) -> Fix | None:
    """A scalar in place of a list, as its entries; in place of a map, at the key that it is meant for."""
    if not isinstance(given, str | int | float):
        return None
    below: dict[str | int, object] = {}
    if schema.get("type") == "array":
        below = dict(enumerate(filter(None, map(str.strip, text_of(given).split(",")))))
    elif schema.get("type") == "object":
        below = _as_key(schema, given)
    if not 0 < len(below) <= _MAX_SPREAD:
        return None
    spread = Fix((Edit(path), *(Edit((*path, part), value) for part, value in below.items())))
    return spread if spread.is_command else None


def _as_key(schema: Schema, given: object) -> dict[str | int, object]:
    """The key of a map that a scalar is meant for, with the scalar: a switch, its main text, or all that it needs."""
    keys, required = schema.get("properties", {}), schema.get("required", ())
    is_switch = "enabled" in keys and text_of(given) in ("true", "false")
    key = "enabled" if is_switch else schema.get("text_is") or (required[0] if len(required) == 1 else "")
    choices = keys.get(key, {}).get("enum")
    return {key: given} if key and (choices is None or given in choices) else {}


def _most(schema: Schema, given: str) -> object:
    """The most that may stand there, where more is given and no default is known to be better."""
    most = schema.get("maximum") if schema.get("default") is None else None
    number = int(given) if re.fullmatch("[0-9]{1,18}", given) else 0
    return most if most is not None and number > most else None


def example(schema: Schema) -> object:
    """A value to begin with: an example, else the default, the least, or the first choice; None without any."""
    if examples := schema.get("examples"):
        return examples[0]
    for key in ("default", "minimum"):
        if schema.get(key) is not None:
            return schema[key]
    return next(iter(schema.get("enum", ())), None)


def _shown(value: object) -> str:
    match value:
        case dict():
            text = "a map"
        case list():
            text = "a list"
        case None | bool():
            text = json.dumps(value)  # as YAML has them
        case _:
            text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."
