"""Applies fixes' commands to a stack file in memory, by the Pulumi CLI's rules."""

from __future__ import annotations

import copy
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

_PART = re.compile(r'\.?(?P<name>\w+)|\[(?P<index>[0-9]+)\]|\["(?P<quoted>(?:[^"\\]|\\"|\\(?!"))*)"\]')
_OPTIONS = ("--path", "--secret")


def is_command(fix: str) -> bool:
    """Returns whether a fix consists of commands that need no value from the user."""
    return fix.startswith("pulumi config ") and " --secret " not in fix and " <value>" not in fix


def are_commands(case: Mapping[str, Any]) -> bool:
    return all(is_command(fix) and "pulumi up" not in fix for fix in case["problems"][1::2])


def applied(stack: Mapping[str, Any], fix: str) -> dict[str, Any]:
    keys = copy.deepcopy(dict(stack))
    for path, value in parsed(fix):
        if value is None:
            _remove(keys, path)
        else:
            _set(keys, path, value)
    return keys


def parsed(fix: str) -> Iterator[tuple[list[str | int], Any]]:
    """The value is None for a removal."""
    for command in re.split(" && (?=pulumi config )", fix):
        yield _command(shlex.split(command))


def is_there(stack: Mapping[str, Any], path: list[str | int]) -> bool:
    here: Any = stack
    for part in path:
        here = _read(here) if isinstance(here, str) and here is not stack else here
        if not (part in here if isinstance(here, dict) else isinstance(here, list) and part in range(len(here))):
            return False
        here = here[part]
    return True


def _command(words: list[str]) -> tuple[list[str | int], Any]:
    pulumi, config, verb, *arguments = words
    assert (pulumi, config) == ("pulumi", "config"), words
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options, literal = arguments[:end], arguments[end + 1 :]
    by_path = "--path" in options
    key, *value = [*(word for word in options if word not in _OPTIONS), *literal]
    path: list[str | int] = _path(key) if by_path else [key]
    if verb == "set":
        (text,) = value
        return path, _typed(text) if by_path else text
    assert (verb, value) == ("rm", []), words
    return path, None


def _path(text: str) -> list[str | int]:
    """Parses a path like ParsePropertyPath (pulumi/pulumi, sdk/go/common/resource/property_path.go)."""
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        match = _PART.match(text, at)
        assert match, text
        quoted = match["quoted"]
        named = match["name"] if quoted is None else quoted.replace('\\"', '"')
        parts.append(int(match["index"]) if match["index"] else named)
        at = match.end()
    return parts


def _typed(text: str) -> Any:
    """Converts booleans and integers, like the CLI with --path (adjustObjectValue of its config package)."""
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"-?[1-9][0-9]{0,17}|0", text) else text


def _set(keys: dict[str, Any], path: list[str | int], value: Any) -> None:
    here: Any = keys
    for part, below in zip(path[:-1], path[1:], strict=True):
        found = here.get(part) if isinstance(here, dict) else here[part] if part in range(len(here)) else None
        if not isinstance(found, dict | list):
            found = [] if isinstance(below, int) and not found else _read(found)
        _put(here, part, found)
        here = found
    _put(here, path[-1], value)


def _put(here: Any, part: str | int, value: Any) -> None:
    """The CLI also appends an item to a list."""
    if isinstance(here, list) and part == len(here):
        here.append(value)
    else:
        here[part] = value


def _remove(keys: dict[str, Any], path: list[str | int]) -> None:
    if is_there(keys, path):
        here: Any = keys
        for part in path[:-1]:
            if isinstance(here[part], str):
                here[part] = _read(here[part])
            here = here[part]
        del here[path[-1]]


def _read(value: Any) -> Any:
    """Returns a map that was set as text, or a new one."""
    try:
        return json.loads(value or "{}") or {}
    except ValueError:
        return {}
