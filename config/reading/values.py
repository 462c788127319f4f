"""Reads the text that Pulumi hands over for one key: bounded, so that no value keeps the program busy."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from typing import Any

from config.problems.errors import Problem
from config.problems.fixes import Path, say

_MAX_LENGTH = 1 << 16
"""Characters of one key. Linux takes 128 KiB of all keys together: the language host hands them over in one variable.

Sources: pulumi/pulumi, sdk/python/cmd/pulumi-language-python/main.go (PULUMI_CONFIG); execve(2), MAX_ARG_STRLEN.
"""
_MAX_LEVELS = 50
Keys = Mapping[str, str]
"""The text of each top-level key of a stack file, as the engine hands it over."""


def too_much(key: str, text: str) -> Problem | None:
    """The problem of a value so long or so deep that reading it, and saying what is wrong in it, takes too long."""
    if len(text) > _MAX_LENGTH:
        what, allowed = f"is {len(text)} characters long", f"at most {_MAX_LENGTH} characters"
    elif text.count("[") + text.count("{") > _MAX_LEVELS and (levels := _levels(text)) > _MAX_LEVELS:
        what, allowed = f"has {levels} levels of maps and lists in each other", f"at most {_MAX_LEVELS} levels"
    else:
        return None
    return Problem((key,), what, allowed, say(f"take out of {key} what is too much, in the stack file"))


def _levels(text: str) -> int:
    """How deep maps and lists lie in each other in JSON text, which Python's parser reads down to its stack's end."""
    deepest = depth = 0
    for bracket in re.findall(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(bracket, 0)
        deepest = max(deepest, depth)
    return deepest


def data(text: str) -> Any:
    """JSON text as data. Raises ValueError for all else, NaN, numbers of thousands of digits, half characters."""

    def no_number(name: str) -> None:
        raise ValueError(name)

    found = json.loads(text, parse_constant=no_number)
    json.dumps(found, ensure_ascii=False).encode()  # a lone surrogate could not be handed on to the engine
    return found


@functools.lru_cache(32)
def data_or_text(key: str, text: str) -> Any:
    """Returns the data in the text of a key, the text if it is none, or None if it is too much.

    It also reads what `data` refuses but Python's parser takes: protections in it are stated, too.
    """
    try:
        return None if too_much(key, text) else json.loads(text)
    except ValueError:
        return text


def value_at(keys: Keys, path: Path, absent: Any = None) -> Any:
    """Returns what stands at a path in a stack file, or `absent`."""
    here: Any = {key: data_or_text(key, text) for key, text in keys.items() if key == path[0] and text}
    for part in path:
        here = here.get(part, absent) if isinstance(here, Mapping) else absent
    return here


def names(text: str) -> object:
    """A list of names, given as JSON text (which is also how a YAML list arrives) or separated by commas."""
    try:
        parsed = data(text)
    except ValueError:
        return [name.strip() for name in text.split(",")]
    return [parsed] if isinstance(parsed, str) else parsed
