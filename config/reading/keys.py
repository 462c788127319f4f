"""Parses the text of each key of a stack file, and finds unknown keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from config.problems.errors import Problem, first
from config.problems.fixes import Fix, Path, in_file, replace_by_hand
from config.reading.values import Keys, data, data_or_text, names, too_much, value_at
from config.rules.provider_keys import provider_keys
from config.schema.inventory import Inventory
from config.schema.json_schema import Schema, allowed, schema_at, schema_of
from config.schema.readings import suggest
from config.schema.unknown_keys import below, chosen_for, key_fix, unknown_key


def parse(own: Mapping[str, str], inventory: Inventory, problems: list[Problem]) -> dict[str, Any]:
    schema, workloads = schema_of(inventory.stack_file), inventory.workloads
    parsed: dict[str, Any] = {}
    for key, text in own.items():
        here = schema_at(schema, (key,))
        if key not in schema["properties"]:
            problems.append(_unknown(key, own, schema, inventory))
        elif problem := too_much(key, text):
            problems.append(problem)
        elif here.get("type") == "object":
            try:
                found = data(text)
                if key == "workloadOptions" and isinstance(found, dict):
                    unknown = sorted(set(found) - set(workloads))
                    problems += first(
                        unknown_key((key, name), workloads, found[name], found, inventory=inventory) for name in unknown
                    )
                    found = {name: options for name, options in found.items() if name in workloads}
                if found not in ({}, None):  # `pulumi config rm` of the last key leaves an empty map
                    parsed[key] = found
            except ValueError:
                what = "is text, not a map"
                is_broken = ":" in text and isinstance(data_or_text(key, text), str)
                fix = in_file((key,)) if is_broken else suggest((key,), here, text)
                problems.append(Problem((key,), what, allowed(here), fix))
        else:
            parsed[key] = names(text) if key == "workloads" else text
    return parsed


def _unknown(key: str, own: Keys, schema: Schema, inventory: Inventory) -> Problem:
    path, known, text = tuple(key.split(".")), sorted(schema["properties"]), own[key]
    if len(path) > 1 and path[0] in known:
        fix = _path_fix(key, text, own, inventory)
        return Problem((key,), "is a path that was set without --path", ", ".join(known), fix, shows_value=False)
    elsewhere = below(path, path, schema) or inventory.path_of(key)
    if elsewhere and len(elsewhere) > 1 and not too_much(key, text):
        value, taken = data_or_text(key, text), value_at(own, elsewhere)
        return unknown_key(
            path, known, value, {}, "is not a top-level key", place=elsewhere, taken=taken, inventory=inventory
        )
    if key in provider_keys("azure-native"):
        fix = replace_by_hand((key,), {f"azure-native:{key}": False})
        what = f"is not a key of this program; use azure-native:{key}"
        return Problem((key,), what, ", ".join(known), fix, shows_value=False)
    lacking = chosen_for(schema, (key,), text, own)
    return unknown_key((key,), known, text, own, lacking=lacking, inventory=inventory)


def _path_fix(key: str, text: str, own: Keys, inventory: Inventory) -> Fix:
    path = tuple(key.split("."))
    if inventory.schema(path):
        return key_fix((key,), path, text, value_at(own, path), inventory)
    known, beside = inventory.schema(path[:-1]).get("properties", {}), value_at(own, path[:-1])
    beside = beside if isinstance(beside, Mapping) else {}
    return unknown_key(path, known, text, beside, inventory=inventory).suggestion.moved(path, (key,))


def move(key: str, there: Path, keys: Keys, inventory: Inventory) -> Fix:
    value = data_or_text(key, keys[key]) if len(there) > 1 else keys[key]
    return key_fix((key,), there, value, value_at(keys, there), inventory)
