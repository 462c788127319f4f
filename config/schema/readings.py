"""Interprets wrong values and suggests valid ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from math import inf
from typing import Any

from config.data.near import is_spelling, meant
from config.problems.fixes import Edit, Fix, Path, path_text, remove_command, say, set_command, text_of
from config.schema.base import number_in
from config.schema.json_schema import Schema, by_schema, entries_of, is_plain, is_text_table

_TRUTH = {
    **dict.fromkeys(("true", "yes", "y", "on", "1", "enable", "enabled", "spot"), True),
    **dict.fromkeys(("false", "no", "n", "off", "0", "disable", "disabled", "regular"), False),
}
_MAX_SPREAD = 5


def suggest(path: Path, schema: Schema, given: object, *, is_entry: bool = False, is_protected: bool = False) -> Fix:
    """Returns the fix of a value that the schema rejects.

    No command removes an item of a list that protects access, or an entry, because the user chose its name.
    """
    match given:
        case [str() as only] if is_plain(schema):
            return (
                set_command(path, only)
                if only.strip()
                else suggest(path, schema, "", is_entry=is_entry, is_protected=is_protected)
            )
        case [int() | float() as only] if schema.get("type") in ("integer", "number"):
            return set_command(path, only)
    choices = schema.get("enum", ()) if isinstance(given, str) else ()
    begun = [each for each in choices if len(str(given)) > 2 and each.lower().startswith(str(given).lower())]
    likely = [each for each in meant(str(given), choices) if is_spelling(str(given), each) or begun == [each]]
    likely = likely or off_among(given, schema.get("enum", ()))
    if len(likely) == 1 or (likely and not isinstance(path[-1], int)):  # a list item may mean each of several choices
        return set_command(path, likely[0])
    if given not in (None, "") and (spread := _spread(path, schema, given)):
        return spread
    kind, is_item = schema.get("type"), isinstance(path[-1], int)
    if kind == "boolean" and given not in (None, "", [], {}):
        read = truth_of(given)
        return by_schema(path, schema) if read is None else set_command(path, read)
    number = _number(path, schema, given)
    if number is not None:
        return set_command(path, number)
    if is_entry and (written := _entry(path, schema, given)):
        return written
    if given and not is_item and _is_section(schema):
        form = f"{path[-1]}: {{<name>: {{...}}}}"
        return say(f"write {path_text(path)} as a map in the stack file, with each entry under its name: {form}")
    is_off = given is False and kind in {"object", "array"} and "protects" not in schema
    is_list_of_access = kind == "array" and "protects" in schema  # without the list, access is open
    if (given not in (None, "", [], {}) and not is_off) or (is_item and is_protected) or is_list_of_access:
        return by_schema(path, schema)
    value = None if kind in {"object", "array"} or is_item or "default" in schema else example(schema)
    return remove_command(path) if value is None else set_command(path, value)


def _entry(path: Path, schema: Schema, given: object) -> Fix | None:
    if schema.get("type") == "object":
        return say(f"write {path_text(path)} as a map in the stack file: {path[-1]}: {{...}}")
    if schema.get("type") == "string" and isinstance(given, bool):
        return say(f'quote the value of {path_text(path)} in the stack file: {path[-1]}: "{text_of(given)}"')
    return None


def _is_section(schema: Schema) -> bool:
    return any("$ref" in each for each in entries_of(schema))


def truth_of(given: object) -> bool | None:
    """Returns the boolean meant by `yes`, `off` or `{enabled: true}`; None if unclear."""
    return _TRUTH.get(str(given.get("enabled") if isinstance(given, Mapping) else given).strip().lower())


def off_among(given: object, choices: Collection[Any]) -> list[Any]:
    return [each for each in choices if each in ("none", "off")] if truth_of(given) is False else []


def _is_table(schema: Schema) -> bool:
    return any(each.get("type") in ("string", "number", "integer") for each in entries_of(schema))


def _spread(path: Path, schema: Schema, given: object) -> Fix | None:
    below: dict[str | int, object] = {}
    if schema.get("type") == "array" and not (isinstance(given, Mapping) and any(given.values())):
        texts = filter(None, map(str.strip, re.split("[,;]", text_of(given))))
        names = list(given if isinstance(given, Mapping | list) else texts)
        below = dict(enumerate(names)) if all(_is_entry(name, schema.get("items", {})) for name in names) else {}
    elif _is_table(schema) and isinstance(given, str):
        pairs = [each.partition("=") for each in re.split(r"[,;\s]+(?=[^\s,;=]+=)", given.strip(" ,;"))]
        is_clear = all(map(all, pairs)) and not any(re.search("[,;]", value) for _, _, value in pairs)
        below = {name: value for name, _, value in pairs} if is_clear else {}
    elif is_text_table(schema) and isinstance(given, list) and all(map(_is_pair, given)):
        below = {each["name"]: each["value"] for each in given}
    elif schema.get("type") == "object" and isinstance(given, str | int | float):
        below = _as_key(schema, given)
    as_bool = is_text_table(schema) and any(text_of(each) in ("true", "false") for each in below.values())
    if as_bool or not 0 < len(below) <= _MAX_SPREAD:
        return None
    spread = Fix((Edit(path), *(Edit((*path, part), value) for part, value in below.items())))
    return spread if spread.is_command else None


def _is_entry(given: object, schema: Schema) -> bool:
    """Returns whether a command can set a list entry: the CLI does not store `true` or `1` as text."""
    text, choices = str(given), schema.get("enum", ())
    if schema.get("type") == "string" and (given != text or re.fullmatch("true|false|[+-]?[0-9]+", text)):
        return False
    fits = (not choices or text in choices) and re.search(schema.get("pattern", ""), text)
    return bool(fits) and not re.search(r"\s", text)


def _is_pair(given: object) -> bool:
    """Returns whether a list entry has a name and a value, like Kubernetes' environment variables."""
    return isinstance(given, Mapping) and given.keys() == {"name", "value"} and isinstance(given["name"], str)


def _as_key(schema: Schema, given: object) -> dict[str | int, object]:
    keys, required = schema.get("properties", {}), schema.get("required", ())
    if "enabled" in keys and (read := truth_of(given)) is not None:
        return {"enabled": read}
    key = schema.get("text_is") or (required[0] if len(required) == 1 else "")
    choices = keys.get(key, {}).get("enum")
    return {key: given} if key and (choices is None or given in choices) else {}


def _number(path: Path, schema: Schema, given: object) -> int | None:
    number, least, most = number_in(given, str(path[-1])), schema.get("minimum", 1), schema.get("maximum", inf)
    is_zero = str(given) == "0"
    if schema.get("type") != "integer" or not number.is_integer() or not (number or is_zero):
        return None
    return int(min(max(number, least), most))


def example(schema: Schema) -> object:
    """Returns a first value: an example, the default, the minimum or the first choice; None without any."""
    if examples := schema.get("examples"):
        return examples[0]
    for key in ("default", "minimum"):
        if schema.get(key) is not None:
            return schema[key]
    return next(iter(schema.get("enum", ())), None)
