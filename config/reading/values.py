"""Parses the text of a key in Pulumi's configuration, with limits on length and depth."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from typing import Any

from config.problems.errors import Problem
from config.problems.fixes import Path, say

_MAX_LENGTH = 1 << 16
"""The longest value of a key. Linux limits all keys together to 128 KiB, because Pulumi passes them in one environment
variable (pulumi/pulumi, sdk/python/cmd/pulumi-language-python/main.go, PULUMI_CONFIG; execve(2), MAX_ARG_STRLEN).
"""
_MAX_LEVELS = 50
Keys = Mapping[str, str]


def too_much(key: str, text: str) -> Problem | None:
    if len(text) > _MAX_LENGTH:
        what, allowed = f"is {len(text)} characters long", f"at most {_MAX_LENGTH} characters"
    elif text.count("[") + text.count("{") > _MAX_LEVELS and (levels := _levels(text)) > _MAX_LEVELS:
        what, allowed = f"has {levels} levels of nested maps and lists", f"at most {_MAX_LEVELS} levels"
    else:
        return None
    return Problem((key,), what, allowed, say(f"shorten {key} in the stack file"))


def _levels(text: str) -> int:
    """Returns the nesting depth. Does not parse the text: Python's JSON parser could overflow the stack."""
    deepest = depth = 0
    for bracket in re.findall(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(bracket, 0)
        deepest = max(deepest, depth)
    return deepest


def data(text: str) -> Any:
    """Returns the value of JSON text. Raises ValueError for other text, NaN, huge numbers and lone surrogates."""

    def no_number(name: str) -> None:
        raise ValueError(name)

    found = json.loads(text, parse_constant=no_number)
    json.dumps(found, ensure_ascii=False).encode()  # the engine cannot encode a lone surrogate
    return found


@functools.lru_cache(32)
def data_or_text(key: str, text: str) -> Any:
    """Returns a key's parsed value, its text if it is not JSON, or None if it is too large.

    Checks use it to find settings that protect access or data in values that `data` rejects.
    """
    try:
        return None if too_much(key, text) else json.loads(text)
    except ValueError:
        return text


def value_at(keys: Keys, path: Path, absent: Any = None) -> Any:
    here: Any = {key: data_or_text(key, text) for key, text in keys.items() if key == path[0] and text}
    for part in path:
        here = here.get(part, absent) if isinstance(here, Mapping) else absent
    return here


def names(text: str) -> object:
    """Returns the names in a JSON list or in a comma-separated text. Pulumi passes a YAML list as JSON.

    Returns other JSON values unchanged, so that the validation rejects them.
    """
    try:
        parsed = data(text)
    except ValueError:
        return [name.strip() for name in text.split(",")]
    return [parsed] if isinstance(parsed, str) else parsed
