"""Finds the setting that an unknown key means, and suggests the replacement.

No suggestion loses a value. If an ambiguous key may mean a setting that protects access or data, the suggestion is
text, not a command.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from config.data.near import (
    called,
    hint,
    is_general,
    is_negated,
    is_shared,
    is_spelling,
    meant,
    plainly,
    replaced_by,
    resembled,
    resembles,
)
from config.problems.errors import Problem
from config.problems.fixes import (
    MAX_COMMAND,
    Edit,
    Fix,
    Path,
    any_name,
    choose_by_hand,
    move_command,
    remove_command,
    replace_by_hand,
    set_command,
    text_of,
)
from config.schema.base import UNFIT
from config.schema.inventory import Inventory
from config.schema.json_schema import Schema, schema_at
from config.schema.readings import suggest, truth_of

_EMPTY: tuple[object, ...] = (None, "", {}, [])
_MOST_KEYS = 50


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
    inventory: Inventory | None = None,
) -> Problem:
    """Returns the problem of an unknown key.

    Args:
        path: The key. At the top, it may include its namespace, which `known` lacks.
        known: The valid keys at this place.
        value: The key's value.
        beside: The other keys here, with their values.
        what: The error.
        place: The correct place, if the key belongs in another one.
        taken: The value that `place` already has.
        lacking: The unset sibling key that should get the value.
        inventory: All settings if the key is one of them; None for a key of a chart's values or a pod template.
    """
    known = sorted(known)
    allowed = ", ".join(known) or "no keys at all"
    if len(allowed) > MAX_COMMAND:
        similar = difflib.get_close_matches(str(path[-1])[:100], known, cutoff=0)
        allowed = f"one of {len(known)} names, such as {', '.join(similar)}"
    if lacking:
        fix = move_command(path, (*path[:-1], lacking), value)
        return Problem(path, what + hint([lacking]), allowed, fix, shows_value=False)
    if (places := replaced_by(path, known)) is not None:
        listed = dict.fromkeys(map(any_name, places), False)
        protections = _listed(_protections(path, value, inventory))
        fix = remove_command(path) if value in _EMPTY else replace_by_hand(path, protections or listed)
        what += f"; use {' or '.join(listed)}" if listed else ""
        return Problem(path, what, allowed, fix, shows_value=False)
    namespace, colon, name = str(path[-1]).rpartition(":") if len(path) == 1 else ("", "", str(path[-1]))
    likely = [] if place else meant(name, known)
    likely = likely if likely and resembles(name, likely[0]) else []
    there = place or ((*path[:-1], namespace + colon + likely[0]) if likely else None)
    standing = beside.get(likely[0]) if likely else taken
    is_sure = is_spelling(name, likely[0]) if likely else _is_around(path, place or ())
    what += f"; use {any_name(place)}" if place else hint(likely)
    fix = key_fix(path, there, value, standing, inventory, is_sure=is_sure and not is_shared(name))
    return Problem(path, what, allowed, fix, shows_value=False)


def key_fix(
    path: Path,
    there: Path | None,
    value: object,
    standing: object = None,
    inventory: Inventory | None = None,
    *,
    is_sure: bool = True,
) -> Fix:
    if value in _EMPTY or (standing is not None and text_of(standing) == text_of(value)):
        return remove_command(path)
    own, found = str(path[-1]), _protections(path, value, inventory)
    if standing is not None and there:
        return replace_by_hand(path, _listed(found)) if found else choose_by_hand(path, there)
    if there is None or "*" in there or not is_sure:
        return replace_by_hand(path, _listed(found) or ({any_name(there): is_negated(own)} if there else {}))
    protects = inventory is not None and "protects" in inventory.schema(there)
    if own in found and not protects:
        return replace_by_hand(path, _listed(found))
    if is_negated(own):
        return replace_by_hand(path, {_named(there, inventory): True})
    return _moved(path, there, value, inventory)


def _moved(path: Path, there: Path, value: object, inventory: Inventory | None) -> Fix:
    faults = inventory.faults(there, value) if inventory else {}
    if not inventory or not faults:
        return move_command(path, there, value)
    if truth_of(value) is False and inventory.schema(there).get("required"):
        return remove_command(path)  # without the section, the feature is off
    if faults.keys() == {there}:
        fault = faults[there]
        instead = fault["ctx"]["faults"][0].instead if fault["type"] == UNFIT else None
        fix = set_command(there, instead) if instead is not None else suggest(there, inventory.schema(there), value)
        moved = Fix((*(edit for edit in fix.edits if not edit.removes), Edit(path)))
        if fix.sets(there) and moved.is_command:
            return moved
    return replace_by_hand(path, {_named(there, inventory): False})


def _named(there: Path, inventory: Inventory | None) -> str:
    required = inventory.schema(there).get("required", ()) if inventory else ()
    return " and ".join(any_name((*there, key)) for key in required) or any_name(there)


def _protections(path: Path, value: object, inventory: Inventory | None) -> dict[str, list[Path]]:
    if inventory is None or inventory.is_option(path) or value in _EMPTY:
        return {}
    own, beside = str(path[-1]), inventory.schema(path[:-1]).get("properties", ())
    places = {key: at for key, at in inventory.protecting().items() if at[0] != "cluster" or not is_foreign(path, at)}
    found = dict(_stated(own, value, places, beside))
    if own in found and replaced_by(path, beside) is not None:
        del found[own]
    return {name: [_nearest(each, path, inventory) or places[each] for each in keys] for name, keys in found.items()}


def _listed(protections: Mapping[str, list[Path]]) -> dict[str, bool]:
    return {any_name(there): is_negated(name) for name, places in protections.items() for there in places}


def _stated(
    name: str, value: object, places: Collection[str], known: Iterable[str] = ()
) -> Iterator[tuple[str, list[str]]]:
    """Yields each key that resembles settings in `places`, with the names of these settings. They protect access or
    data.

    Skips keys below such a key, and misspellings of `known` siblings that protect nothing.
    """
    found, is_other = resembled(name, tuple(places)), plainly(name, {*known} - {*places, name})
    if found and not is_other:
        yield name, found
    elif isinstance(value, Mapping):
        for key, inside in islice(value.items(), _MOST_KEYS):
            yield from _stated(str(key), inside, places)


def _nearest(name: str, path: Path, inventory: Inventory) -> Path | None:
    around = ((*path[:end], name) for end in range(len(path) - 1, 0, -1))
    return next((each for each in around if "protects" in inventory.schema(each)), None)


def _is_around(path: Path, place: Path) -> bool:
    """Returns whether a map that contains the key, or a sibling of the key, also contains the place. Always true for
    keys in the top two levels.
    """
    return len(path) < 3 or place[:-2] == path[:-1] or path[: len(place) - 1] == place[:-1]


def is_foreign(path: Path, place: Path) -> bool:
    """Returns whether the sections of key and place are different resources that may have settings of the same name.

    Returns False for a key directly below `cluster` or `network`, because users often confuse these two, and for a name
    that is clear without its section.
    """
    if len(path) < 2 or len(place) < 2 or path[0] == place[0]:
        return False
    is_same = path[-1] == place[-1] and not is_shared(str(path[-1]))
    return len(path) > 2 or not (is_same or path[0] in ("cluster", "network"))


def elsewhere(path: Path, location: Path, schema: Schema, inventory: Inventory | None) -> Path | None:
    if found := below(path, location, schema):
        return found
    known = schema_at(schema, location[:-1]).get("properties", {})
    if inventory is None or plainly(str(path[-1]), known):
        return None
    there = inventory.path_of(str(path[-1]))
    return None if there and is_foreign(path, there) else there


def below(path: Path, location: Path, schema: Schema) -> Path | None:
    """Returns the only place of a key that is one level too high, such as a pool's `maxCount` or `clusterTier`, or
    None.
    """
    name, known = str(path[-1]), schema_at(schema, location[:-1]).get("properties", {})
    inner = [(key, each) for key in known for each in schema_at(schema, (*location[:-1], key)).get("properties", {})]
    found = [(*path[:-1], *each) for each in inner if called(name, [each[1], "".join(each)])]
    return found[0] if len(found) == 1 and not is_general(name) and not plainly(name, known) else None


def chosen_for(schema: Schema, location: Path, value: object, beside: Collection[str]) -> str:
    """Returns an unset sibling key that has the value as a choice, and is required or similarly named; else an empty
    string.
    """
    parent = schema_at(schema, location[:-1])
    names = [*parent.get("required", ()), *called(str(location[-1]), parent.get("properties", {}))]
    able = (each for each in names if value in schema_at(schema, (*location[:-1], each)).get("enum", ()))
    return next((each for each in able if each not in beside), "")
