"""Suggests known names for a mistyped name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 200  # comparing longer texts is slow, and no known name is this long


def similar(name: str, known: Iterable[str]) -> list[str]:
    by_lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(name.lower(), by_lower) if len(name) <= _LONGEST else []
    return [by_lower[each] for each in found]


def hint(name: str, known: Iterable[str], before: str = "") -> str:
    """Returns a question with similar names for the end of a message, or an empty text. `before` precedes each name."""
    found = [f"'{before}{each}'" for each in similar(name, known)]
    return f" Did you mean {' or '.join(found)}?" if found else ""
