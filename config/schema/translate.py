"""Converts pydantic's errors into problems with path, allowed values and fix."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from config.problems.errors import Problem
from config.problems.fixes import Path, rename_by_hand, set_command
from config.schema.base import UNFIT, Unfit
from config.schema.inventory import Inventory
from config.schema.json_schema import Schema, allowed, by_schema, schema_at, schema_of
from config.schema.readings import suggest, truth_of
from config.schema.unknown_keys import chosen_for, elsewhere, unknown_key

_MAX_SHOWN = 80


def problems_of(
    errors: Iterable[ErrorDetails],
    model: type[BaseModel],
    given: Mapping[str, Any],
    prefix: Path = (),
    inventory: Inventory | None = None,
) -> Iterator[Problem]:
    """Yields the problems from a validation of `given` as a `model`. `prefix` is the path of `given` in the stack file.

    The `inventory` finds the right place of a misplaced key.
    """
    schema = schema_of(model)
    for error in errors:
        location = place(error)
        path = (*prefix, *location)
        if location != error["loc"]:
            yield _wrong_name(path, schema_at(schema, location[:-1]).get("propertyNames", {}))
        elif error["type"] == "extra_forbidden":
            yield _extra(path, location, error["input"], schema, given, inventory)
        elif error["type"] == "missing":
            here = schema_at(schema, location)
            yield Problem(path, "is not set", allowed(here), by_schema(path, here), shows_value=False)
        elif error["type"] == UNFIT:
            faults = error["ctx"]["faults"]
            yield from (_unfit(fault, schema, location, prefix, error["input"], inventory) for fault in faults)
        else:
            yield _wrong_value(path, location, error["input"], schema)


def _wrong_name(path: Path, rule: Schema) -> Problem:
    return Problem(path, "is not a valid name", str(rule.get("allowed", "another name")), rename_by_hand(path))


def _extra(
    path: Path, location: Path, value: object, schema: Schema, given: Mapping[str, Any], inventory: Inventory | None
) -> Problem:
    beside, prefix = _at(given, location[:-1]), path[: len(path) - len(location)]
    # For a workload option, search only the options of the workload: some share a name with a setting of the platform.
    there = elsewhere(path, location, schema, None if prefix else inventory)
    taken = _at(given, there[len(prefix) :]) if there else None
    lacking = chosen_for(schema, location, value, beside)
    known = schema_at(schema, location[:-1]).get("properties", {})
    return unknown_key(path, known, value, beside, place=there, taken=taken, lacking=lacking, inventory=inventory)


def _wrong_value(path: Path, location: Path, given: object, schema: Schema) -> Problem:
    here, known = schema_at(schema, location), schema_at(schema, location[:-1]).get("properties", ())
    is_entry = isinstance(location[-1], str) and location[-1] not in known
    fix = suggest(path, here, given, is_entry=is_entry, is_protected="protects" in schema_at(schema, location[:-1]))
    is_scalar = not isinstance(given, dict | list | None) or truth_of(given) is not None
    shows = is_scalar or any(not edit.removes for edit in fix.edits)
    return Problem(path, f"is {_shown(given)}", allowed(here), fix, shows_value=shows)


def _unfit(
    fault: Unfit, schema: Schema, location: Path, prefix: Path, given: object, inventory: Inventory | None
) -> Problem:
    below = (*location, *fault.below)
    path = (*prefix, *below)
    if fault.known:
        beside = _at(given, fault.below[:-1])
        return unknown_key(path, fault.known, beside[fault.below[-1]], beside, fault.what, inventory=inventory)
    here = schema_at(schema, below)
    fix = by_schema(path, here) if fault.instead is None else set_command(path, fault.instead)
    return Problem(path, fault.what, fault.allowed or allowed(here), fix)


def _at(data: Any, path: Path) -> Any:
    try:
        return functools.reduce(lambda here, part: here[part], path, data)
    except (LookupError, TypeError):
        return None


def place(error: ErrorDetails) -> Path:
    """Returns the path of the invalid value, or of the invalid key, which pydantic marks with "[key]"."""
    location = error["loc"]
    return location[:-1] if location[-1:] == ("[key]",) else location


def _shown(value: object) -> str:
    match value:
        case dict():
            text = "a map"
        case list():
            text = "a list"
        case None | bool():
            text = json.dumps(value)  # null, true and false, as in YAML
        case _:
            text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."
