"""Names that look like a mistyped one."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Collection, Iterable

from config.facts import data

_LONGEST = 200
"""Characters of a name that could be meant for another: all known ones are shorter by far, and comparing takes time."""
_PLAINLY = 0.85
"""How alike two names are of which one is the other mistyped (difflib's ratio)."""


def near(name: str, known: Iterable[str], limit: int = 3) -> list[str]:
    """Returns known names near to `name`, best first, in any case: those that end with it, then those that are alike.

    Else they are those with a first word that is alike, or those that contain it.
    """
    if len(name) > _LONGEST:
        return []
    by_lower: dict[str, str] = {}
    for candidate in known:
        by_lower.setdefault(candidate.lower(), candidate)
    wanted = name.lower()
    ends = [candidate for candidate in by_lower if candidate.endswith(f"_{wanted}")]  # Standard_, which is left out
    matches = list(dict.fromkeys([*ends, *difflib.get_close_matches(wanted, by_lower, limit, cutoff=0.6)]))[:limit]
    if not matches:
        first_words = {candidate.split("-")[0] for candidate in by_lower}
        likely = set(difflib.get_close_matches(wanted, first_words, len(first_words) + 1, cutoff=0.6))
        matches = [found for found in by_lower if found.split("-")[0] in likely]
    if not matches and wanted:
        matches = [candidate for candidate in by_lower if wanted in candidate][:limit]
    return [by_lower[match] for match in matches]


def meant(name: str, known: Collection[str]) -> list[str]:
    """Known names that one may stand for, best first: those that others call so, before those that are near."""
    elsewhere = [key for key, others in _other_names().items() if key in known and _plain(name) in others]
    return list(dict.fromkeys([*elsewhere, *near(name, known)]))


@functools.cache
def _other_names() -> dict[str, set[str]]:
    return {key: set(map(_plain, names)) for key, names in data.read("other_names.yaml").items()}


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def mistyped(name: str, known: Collection[str]) -> list[str]:
    """Known names that one is plainly meant for, best first. One that goes on where a known one ends is another."""
    if name in known:
        return []
    swapped = [each for each in known if sorted(each) == sorted(name)]
    alike = difflib.get_close_matches(name[:_LONGEST], known, cutoff=_PLAINLY)
    return list(dict.fromkeys(each for each in (*swapped, *alike) if not name.startswith(each)))


def hint(names: Iterable[str]) -> str:
    """The end of a sentence that names them: `; near: a, b`, or nothing."""
    listed = ", ".join(names)
    return f"; near: {listed}" if listed else ""
