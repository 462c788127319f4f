"""Names that a mistyped one may stand for. Azure gives no such hints: they are for the user of the simulator."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 200  # comparing longer texts takes long, and no known name has this length


def similar(name: str, known: Iterable[str]) -> list[str]:
    """Returns up to three known names, the most similar first, whatever their case."""
    by_lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(name.lower(), by_lower) if len(name) <= _LONGEST else []
    return [by_lower[each] for each in found]


def hint(name: str, known: Iterable[str], before: str = "") -> str:
    """Returns a question about them that ends a message, or an empty text. `before` stands before each name."""
    found = [f"'{before}{each}'" for each in similar(name, known)]
    return f" Did you mean {' or '.join(found)}?" if found else ""
