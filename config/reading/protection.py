"""Settings that protect access or data: whether a change weakens one that the user has stated.

A field of the settings says so by the mark `protects` of its schema (config/schema/base.py, `protects`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from ipaddress import IPv4Network
from math import inf
from typing import Any

from config.facts.near import meant, near, plainly, resembled
from config.problems.fixes import Path
from config.reading.edits import Keys
from config.reading.values import data_or_text, value_at
from config.schema.base import number_in
from config.schema.readings import off_among, truth_of

SchemaAt = Callable[[Path], Mapping[str, Any]]
_ABSENT: Any = object()
MAX_LENGTH = 10_000
"""Characters of settings that are compared: nobody has written more by hand, so that it is changed by hand, too."""
_MOST_KEYS = 50
"""Keys of a map among which misspelt ones are looked for; comparing more takes long."""
_NEEDED_PERMISSIONS = frozenset("rl")
"""Without these nothing mounts."""


def weakens(before: Keys, after: Keys, schema_at: SchemaAt, path_of: Callable[[str], Path | None]) -> bool:
    """Returns whether the stack file `after` a fix protects less than `before`, where that states a protection.

    `path_of` finds the place of a key that stands too high.
    """
    changed = {key: text for key, text in before.items() if text and after.get(key) != text}
    if sum(map(len, changed.values())) > MAX_LENGTH:
        return True
    old = {key: data_or_text(key, text) for key, text in changed.items()}
    now = {key: data_or_text(key, text) for key, text in after.items() if before.get(key) != text}
    moved = {leaf for key, value in now.items() for leaf in _leaves((key,), value)}
    moved -= {leaf for key, value in old.items() for leaf in _leaves((key,), value)}
    known = schema_at(())
    for key, value in old.items():
        name = _meant(key, old, known)
        path: Path = (name,) if name in known.get("properties", {}) else path_of(key) or (key,)
        there = value_at(after, (key,) if key in after else path, _ABSENT)
        for lost in weakened(path, value, there, schema_at):
            stated = value_at(before, lost, _ABSENT)
            if not any(at[-1] == lost[-1] and each == repr(stated) for at, each in moved):
                return True
    return False


def stated(
    name: str, value: Any, places: Collection[str], known: Iterable[str] = ()
) -> Iterator[tuple[str, list[str]]]:
    """Yields each unknown key that is named like a protection, with the names of the `places` that it resembles.

    Nothing below such a key is one. A misspelt key of those `known` beside it, which protects nothing, is none either.
    """
    found, is_other = resembled(name, tuple(places)), plainly(name, {*known} - {*places, name})
    if found and not is_other:
        yield name, found
    elif isinstance(value, Mapping):
        for key, inside in value.items():
            yield from stated(str(key), inside, places)


def _leaves(path: Path, value: Any) -> Iterator[tuple[Path, str]]:
    """Yields each value below a path with its own path; a fix that sets the same value at another key moves it."""
    if not isinstance(value, Mapping):
        yield path, repr(value)
    for key, each in value.items() if isinstance(value, Mapping) else ():
        yield from _leaves((*path, str(key)), each)


def weakened(path: Path, before: Any, after: Any, schema_at: SchemaAt) -> Iterator[Path]:
    """Yields the protecting settings that were stated in `before` and are weaker, or gone, in `after`.

    Both are what stands at `path`. A misspelt key counts as the one that is meant.
    """
    if before == after:
        return
    schema = schema_at(path)
    if after is _ABSENT and not schema_at(path[:-1]).get("properties"):
        return  # an entry under a name of the user's choice is gone as a whole, with what it gave access to
    rule = schema.get("protects")
    if rule and _is_weaker(rule, before, after, schema):
        yield path
    for key, value in before.items() if isinstance(before, Mapping) else ():
        there = after if isinstance(after, Mapping) else {}
        name = _meant(str(key), before, schema)
        yield from weakened((*path, name), value, there.get(name, there.get(key, _ABSENT)), schema_at)


def _meant(key: str, beside: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    known = schema.get("properties", {})
    likely = [] if key in known or not known or len(beside) > _MOST_KEYS else meant(key, known)
    return likely[0] if likely and likely[0] not in beside else key


def _is_weaker(rule: Any, before: Any, after: Any, schema: Mapping[str, Any]) -> bool:
    if before in (None, "", [], {}):
        return False
    match rule:
        case list():
            chosen = schema.get("default") if after is _ABSENT else after
            return _rank(chosen, rule) > _rank(before, rule)
        case "limit":
            limit_now = schema.get("default", inf) if after is _ABSENT else after
            least = schema.get("minimum", 0)
            return bool(least <= _amount(before, least) < _amount(limit_now, least))
        case "letters":
            return isinstance(after, str) and bool(set(after) - set(str(before)) - _NEEDED_PERMISSIONS)
        case "ranges":
            return _is_gone(before, after) or not _is_within(_entries(after), _entries(before))
        case _:
            return _is_gone(before, after)


def _rank(value: Any, strongest_first: list[Any]) -> int:
    """The place of a value among its choices; that of the strongest where it cannot be read."""
    if True in strongest_first:
        found: Any = truth_of(value)
    else:
        found = next(iter(off_among(value, strongest_first) or near(str(value).lower(), strongest_first)), value)
    return strongest_first.index(found) if found in strongest_first else 0


def _amount(limit: Any, least: float) -> float:
    """Returns a limit as a number. None and a negative number limit nothing; other text may mean the least."""
    try:
        amount = inf if limit is None else float(limit)
    except (TypeError, ValueError, OverflowError):
        return number_in(limit, "days gpus") or least
    return inf if amount < 0 else amount


def _is_gone(before: Any, after: Any) -> bool:
    return after in (_ABSENT, None, "", [], {}) or len(_entries(after)) < len(_entries(before))


def _entries(value: Any) -> list[str]:
    return list(map(str, value)) if isinstance(value, list | tuple) else str(value).split(",")


def _is_within(ranges: list[str], others: list[str]) -> bool:
    stated = [network for text in others if (network := _network(text))]
    found = [_network(text) for text in ranges]
    return all(each is None or any(each.subnet_of(network) for network in stated) for each in found)


def _network(text: str) -> IPv4Network | None:
    try:
        return IPv4Network(text.strip(), strict=False)
    except ValueError:
        return None
