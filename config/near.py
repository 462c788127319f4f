"""Names that look like a mistyped one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 200
"""Characters of a name that could be meant for another: all known ones are shorter by far, and comparing takes time."""


def near(name: str, known: Iterable[str], limit: int = 3) -> list[str]:
    """Known names nearest to `name`, best first, in any case; else by their first word; else those that contain it."""
    if len(name) > _LONGEST:
        return []
    by_lower: dict[str, str] = {}
    for candidate in known:
        by_lower.setdefault(candidate.lower(), candidate)
    wanted = name.lower()
    matches = difflib.get_close_matches(wanted, by_lower, limit, cutoff=0.6)
    if not matches:
        matches = [found for found in by_lower if difflib.get_close_matches(wanted, [found.split("-")[0]], cutoff=0.6)]
    if not matches and wanted:
        matches = [candidate for candidate in by_lower if wanted in candidate][:limit]
    return [by_lower[match] for match in matches]


def hint(names: Iterable[str]) -> str:
    """The end of a sentence that names them: `; near: a, b`, or nothing."""
    listed = ", ".join(names)
    return f"; near: {listed}" if listed else ""
