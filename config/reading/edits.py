"""What the commands of fixes do to a stack file, by the rules of Pulumi's CLI."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from config.problems.fixes import Fix, Path, text_of
from config.reading.values import too_much

Keys = Mapping[str, str]
"""The text of each top-level key of a stack file, as the engine hands it over."""


class Draft:
    """A stack file that fixes change, one after the other."""

    def __init__(self, keys: Keys) -> None:
        self._keys: dict[str, Any] = dict(keys)
        """By key its text, or the map or list that it stands for, once something below it was asked for."""

    def apply(self, fix: Fix) -> None:
        """Does what the commands do. Raises ValueError where the CLI refuses one: to set a key below what is no map."""
        for edit in fix.edits:
            value: Any = text_of(edit.value)
            if len(edit.path) > 1:
                value = _typed(value)
                if not self._is_tree(edit.path) and not edit.removes:
                    self._keys.pop(
                        str(edit.path[0]), None
                    )  # at the top, and only there, the CLI puts a map in its place
            self._keys = _without(self._keys, edit.path) if edit.removes else _with(self._keys, edit.path, value)

    def has(self, path: Path) -> bool:
        """Whether something stands at a path."""
        self._is_tree(path)
        return _without(self._keys, path) is not self._keys

    def keys(self) -> Keys:
        """The text of each key."""
        return {key: value if isinstance(value, str) else json.dumps(value) for key, value in self._keys.items()}

    def _is_tree(self, path: Path) -> bool:
        """Whether there is a map or a list at the top of a path, which is then read."""
        key = str(path[0])
        found = self._keys.get(key)
        if isinstance(found, str) and not too_much(key, found):
            try:
                found = json.loads(found)
            except ValueError:
                return False
        if isinstance(found, dict | list):
            self._keys = {**self._keys, key: found}
        return isinstance(found, dict | list)


def _with(here: Any, path: Path, value: Any) -> Any:
    """The same with a value at a path. Source: Set of pulumi/pulumi, sdk/go/common/resource/config/object.go."""
    if not path:
        return value
    part, rest = path[0], path[1:]
    if isinstance(part, int):
        items = [] if here is None else here
        if not isinstance(items, list) or part > len(items):
            raise ValueError(part)
        below = items[part] if part < len(items) else None
        return [*items[:part], _with(below, rest, value), *items[part + 1 :]]
    keys = {} if here is None else here
    if not isinstance(keys, dict):
        raise ValueError(part)  # noqa: TRY004 - of the same kind as above
    return {**keys, part: _with(keys.get(part), rest, value)}


def _without(here: Any, path: Path) -> Any:
    """The same without what stands at a path; the very same where nothing does."""
    part: Any = path[0]
    rest = path[1:]
    there = part in here if isinstance(here, dict) else isinstance(here, list) and part in range(len(here))
    if not there:
        return here
    below = _without(here[part], rest) if rest else None
    if rest and below is here[part]:
        return here
    if isinstance(here, dict):
        return {**here, part: below} if rest else {key: value for key, value in here.items() if key != part}
    return [*here[:part], *([below] if rest else []), *here[part + 1 :]]


def _typed(text: str) -> Any:
    """With --path, the CLI keeps truth values and whole numbers as such (adjustObjectValue, in the same folder)."""
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"-?[1-9][0-9]{0,17}|0", text) else text
