"""The difference between two JSON values by property, as in Pulumi's detailed diff."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulator.plugins.kubernetes.replace_rules import Path, Pattern, replaces
from simulator.plugins.marshal import UNKNOWN
from simulator.plugins.protocol import provider_pb2

PropertyDiff = provider_pb2.PropertyDiff
Changes = dict[Path, PropertyDiff]

_REPLACING = {
    PropertyDiff.ADD: PropertyDiff.ADD_REPLACE,
    PropertyDiff.DELETE: PropertyDiff.DELETE_REPLACE,
    PropertyDiff.UPDATE: PropertyDiff.UPDATE_REPLACE,
}
_MISSING = object()


def compare(old: Any, new: Any, patterns: Sequence[Pattern] = ()) -> Changes:
    """Returns the changes from `old` to `new`. An unknown value counts as changed, and a None property as missing.

    Marks a change as a replacement if its path is at or below a path in `patterns`, or if its new value contains such a
    path.
    """
    changes: Changes = {}
    _compare((), old, new, patterns, changes)
    return changes


def replacing(changes: Changes) -> list[str]:
    return [path_text(path) for path, change in changes.items() if change.kind in _REPLACING.values()]


def path_text(path: Path) -> str:
    """Formats a path, such as `spec.containers[0].image`. A name with a dot, bracket or quote becomes `["name"]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif any(character in step for character in '."[]'):
            quoted = step.replace('"', '\\"')
            text += f'["{quoted}"]'
        else:
            text += f".{step}" if text else step
    return text


def ignored(path: Path, ignore_changes: Sequence[str]) -> bool:
    """Returns whether the path or a parent is in the user's `ignore_changes` (`*` matches any one step)."""
    return any(_covers(parse_path(pattern), path) for pattern in ignore_changes)


def parse_path(text: str) -> Path:
    """Parses a path in the format of `path_text`."""
    steps: list[str | int] = []
    position = 0
    while position < len(text):
        if text.startswith('["', position):
            end = text.index('"]', position)
            steps.append(text[position + 2 : end].replace('\\"', '"'))
            position = end + 2
        elif text[position] == "[":
            end = text.index("]", position)
            index = text[position + 1 : end]
            steps.append(int(index) if index.isdigit() else index)
            position = end + 1
        else:
            start = position + (text[position] == ".")
            position = next((at for at in range(start, len(text)) if text[at] in ".["), len(text))
            steps.append(text[start:position])
    return tuple(steps)


def _covers(pattern: Path, path: Path) -> bool:
    return len(pattern) <= len(path) and all(step in ("*", at) for step, at in zip(pattern, path, strict=False))


def _compare(path: Path, old: Any, new: Any, patterns: Sequence[Pattern], changes: Changes) -> None:
    if old is _MISSING:
        _record(path, PropertyDiff.ADD, new, patterns, changes)
    elif new is _MISSING:
        _record(path, PropertyDiff.DELETE, None, patterns, changes)
    elif isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            before, after = _get(old, name), _get(new, name)
            if before is not after:
                _compare((*path, name), before, after, patterns, changes)
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            before = old[index] if index < len(old) else _MISSING
            after = new[index] if index < len(new) else _MISSING
            _compare((*path, index), before, after, patterns, changes)
    elif new is UNKNOWN or not _same(old, new):
        _record(path, PropertyDiff.UPDATE, new, patterns, changes)


def _get(value: dict[str, Any], name: str) -> Any:
    found = value.get(name)
    return _MISSING if found is None else found


def _same(old: Any, new: Any) -> bool:
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)


def _record(
    path: Path, kind: PropertyDiff.Kind.ValueType, value: Any, patterns: Sequence[Pattern], changes: Changes
) -> None:
    found = _REPLACING[kind] if replaces(path, value, patterns) else kind
    changes[path] = PropertyDiff(kind=found, inputDiff=kind == PropertyDiff.DELETE)
