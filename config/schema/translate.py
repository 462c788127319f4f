"""Turns what pydantic finds wrong into problems: the key, what may stand there, the command that mends it."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from config.facts.near import (
    called,
    hint,
    is_general,
    is_negated,
    is_shared,
    is_spelling,
    meant,
    plainly,
    replaced_by,
    resembles,
)
from config.problems.errors import Problem
from config.problems.fixes import (
    Fix,
    Path,
    any_name,
    by_hand,
    choose_by_hand,
    move_command,
    path_text,
    remove_command,
    replace_by_hand,
    say,
    set_command,
    text_of,
)
from config.schema.base import UNFIT, Unfit
from config.schema.readings import Schema, is_text_table, mend, truth_of

MAX_SHOWN = 80
_SUCCEEDED: Mapping[Path, Path] = {("operators", "networkOperator", "drainOnUpgrade"): ("operators", "driverUpgrades")}
"""Keys that an earlier version had, and what has taken their place."""


def problems_of(
    errors: Iterable[ErrorDetails],
    model: type[BaseModel],
    given: Mapping[str, Any],
    prefix: Path = (),
    path_of: Callable[[str], Path | None] = lambda _: None,
) -> Iterator[Problem]:
    """Problems for the errors of one validation of `given` as a `model`; `prefix` is where its keys hang.

    `path_of` finds the only place of a key that stands in the wrong one.
    """
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
            known, beside = parent.get("properties", {}), _at(given, location[:-1])
            there = below(path, location, schema) or _elsewhere(path, known, path_of)
            taken = _at(given, there[len(prefix) :]) if there else None
            lacking = chosen_for(schema, location, error["input"], beside)
            yield unknown_key(path, known, error["input"], beside, place=there, taken=taken, lacking=lacking)
        elif error["type"] == "missing":
            choices = allowed(schema_at(schema, location))
            yield Problem(path, "is not set", choices, by_hand(path, "set"), shows_value=False)
        elif error["type"] == UNFIT:
            yield from (_unfit(fault, schema, location, prefix, error["input"]) for fault in error["ctx"]["faults"])
        else:
            here, given_here = schema_at(schema, location), error["input"]
            what = f"is {_shown(given_here)}"
            known = schema_at(schema, location[:-1]).get("properties", ())
            fix = mend(path, here, given_here, is_entry=isinstance(location[-1], str) and location[-1] not in known)
            plain = not isinstance(given_here, dict | list | None) or truth_of(given_here) is not None
            shows = plain or any(not edit.removes for edit in fix.edits)
            yield Problem(path, what, allowed(here), fix, shows_value=shows)


def _unfit(fault: Unfit, schema: Schema, location: Path, prefix: Path, given: object) -> Problem:
    """What a validator of ours has found below a location, where `given` stands."""
    below = (*location, *fault.below)
    path, instead = (*prefix, *below), fault.instead if isinstance(fault.instead, list) else [fault.instead]
    if fault.known:
        beside = _at(given, fault.below[:-1])
        return unknown_key(path, fault.known, beside[fault.below[-1]], beside, fault.what)
    fix, *others = [by_hand(path) if each is None else set_command(path, each) for each in instead or [None]]
    return Problem(path, fault.what, fault.allowed or allowed(schema_at(schema, below)), fix, others=tuple(others))


def chosen_for(schema: Schema, location: Path, value: object, beside: Collection[str]) -> str:
    """Returns the key not set beside an unknown one that has its value among its choices, if needed or called so."""
    parent = schema_at(schema, location[:-1])
    names = [*parent.get("required", ()), *called(str(location[-1]), parent.get("properties", {}))]
    able = (each for each in names if value in schema_at(schema, (*location[:-1], each)).get("enum", ()))
    return next((each for each in able if each not in beside), "")


def _elsewhere(path: Path, known: Collection[str], path_of: Callable[[str], Path | None]) -> Path | None:
    """Returns the only place of a key that stands in the wrong one."""
    there = None if plainly(str(path[-1]), known) else path_of(str(path[-1]))
    return None if there and is_foreign(path, there) else there


def is_foreign(path: Path, place: Path) -> bool:
    """Returns whether a key and a place are in sections of different resources, which have settings of the same name.

    The cluster's and its network's are often taken for each other.
    """
    if len(path) < 2 or len(place) < 2 or path[0] == place[0]:
        return False
    is_same = path[-1] == place[-1] and not is_shared(str(path[-1]))
    return len(path) > 2 or not (is_same or path[0] in ("cluster", "network"))


def below(path: Path, location: Path, schema: Schema) -> Path | None:
    """Returns the only place of a key that stands one level too high, such as `maxCount` of a pool or `clusterTier`."""
    name, known = str(path[-1]), schema_at(schema, location[:-1]).get("properties", {})
    inner = [(key, each) for key in known for each in schema_at(schema, (*location[:-1], key)).get("properties", {})]
    found = [(*path[:-1], *each) for each in inner if called(name, [each[1], "".join(each)])]
    return found[0] if len(found) == 1 and not is_general(name) and not plainly(name, known) else None


def _at(data: Any, path: Path) -> Any:
    """Returns what stands at a path, or None."""
    try:
        return functools.reduce(lambda here, part: here[part], path, data)
    except (LookupError, TypeError):
        return None


@functools.cache
def schema_of(model: type[BaseModel]) -> Schema:
    """The JSON schema of a model, by the names that stack files use."""
    return model.model_json_schema(by_alias=True)


def place(error: ErrorDetails) -> Path:
    """Where an error is: that of a key itself, which pydantic marks so, is at the key."""
    location = error["loc"]
    return location[:-1] if location[-1:] == ("[key]",) else location


def unknown_key(
    path: Path,
    known: Iterable[str],
    value: object,
    beside: Mapping[str, Any],
    what: str = "is an unknown key",
    *,
    place: Path | None = None,
    taken: object = None,
    lacking: str = "",
) -> Problem:
    """The problem of a key that nobody reads; `known` are those that may stand there, those `beside` it are set.

    It belongs to another `place` if one is given, where the value `taken` stands; or to the key `lacking` beside it.

    A top-level key may have its namespace before it, which those are without.
    """
    known = sorted(known)
    if lacking:
        fix = move_command(path, (*path[:-1], lacking), value)
        return Problem(path, what + hint([lacking]), ", ".join(known), fix, shows_value=False)
    if (places := replaced_by(path, known)) is not None:
        listed = dict.fromkeys(map(any_name, places), False)
        is_empty = value in (None, "", {}, [])
        fix = remove_command(path) if is_empty else replace_by_hand(path, listed)
        what += f"; in its place: {', '.join(listed)}" if listed else ""
        return Problem(path, what, ", ".join(known) or "no keys at all", fix, shows_value=False)
    namespace, colon, name = str(path[-1]).rpartition(":") if len(path) == 1 else ("", "", str(path[-1]))
    likely = [] if place else meant(name, known)
    likely = likely if likely and resembles(name, likely[0]) else []
    there = place or ((*path[:-1], namespace + colon + likely[0]) if likely else None)
    standing = beside.get(likely[0]) if likely else taken
    is_sure = is_spelling(name, likely[0]) if likely else _is_around(path, place or ())
    successor = _SUCCEEDED.get(path, place)
    what += f"; in its place: {any_name(successor)}" if successor else hint(likely)
    is_sure &= not (is_negated(name) or is_shared(name))
    fix = place_fix(path, there or successor, value, standing, is_sure=is_sure)
    return Problem(path, what, ", ".join(known) or "no keys at all", fix, shows_value=False)


def _is_around(path: Path, place: Path) -> bool:
    """Returns whether a place is at the top, above or one level below: what is elsewhere has settings of its own."""
    return len(path) < 3 or place[:-2] == path[:-1] or path[: len(place) - 1] == place[:-1]


def place_fix(path: Path, there: Path | None, value: object, standing: object, *, is_sure: bool = True) -> Fix:
    """Returns the fix of a key that stands for another one, which is set to `standing`: no command loses its value."""
    if value in (None, "", {}, []) or (standing is not None and text_of(standing) == text_of(value)):
        return remove_command(path)
    if standing is not None and there:
        return choose_by_hand(path, there)
    if there is None or "*" in there or not is_sure:
        return replace_by_hand(path, {any_name(there): is_negated(str(path[-1]))} if there else {})
    return move_command(path, there, value)


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


@functools.cache
def protecting(model: type[BaseModel]) -> Mapping[str, Path]:
    """Returns the name of each setting that protects access or data, with the first place where it stands."""
    schema, paths = schema_of(model), sorted(paths_in(model), key=len, reverse=True)
    return {str(path[-1]): path for path in paths if schema_at(schema, path).get("protects")}


def _resolved(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Follows a reference, and takes what is not null of an optional value; keeps default and examples beside it."""
    outer = {key: schema[key] for key in ("allowed", "default", "examples", "protects") if key in schema}
    for option in schema.get("anyOf", ()):
        if option.get("type") != "null":
            return {**_resolved(option, definitions), **outer}
    if reference := schema.get("$ref"):
        return {**_resolved(definitions[reference.rpartition("/")[2]], definitions), **outer}
    return schema


def allowed(schema: Schema) -> str:
    """What may stand where the schema holds, in words."""
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
            return "a list, as in [a, b]"
        case "object":
            if is_text_table(schema):
                return 'a map of text, as in {NAME: "value"}'
            keys = ", ".join(schema.get("properties", {}))
            return f"a map with the keys {keys}" if keys else "a map"
        case "string":
            return "text"
        case _:
            return "a value"


def _bounds(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f" from {low} to {high}"
    return f" of {low} or more" if low is not None else ""


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
