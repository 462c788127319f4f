"""Finds known names that a mistyped name resembles."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from config.data import data

_LONGEST = 200
"""The longest name that is compared, because comparisons take time."""
_LONG = 9
"""The minimum length, including hyphens, of a name that counts as the beginning of a longer name."""
_NEGATIONS = "disabled disable no not without skip public unprotected allow"
_GENERAL = "day gpu group permission policy taint upload"
"""Words that alone do not mean a setting that protects access or data (resourceGroupName, eviction_policy)."""
_OF_SECTIONS = (
    *("count", "enabled", "id", "key", "name", "path", "repo", "repository", "server", "size", "source", "type"),
    *("url", "value", "zones"),
)
_OF_RESOURCES = ("location", "sku", "tier", "version")
_KINDS = ("enabled", "id", "profile", "type")
_NEAR, _ALIKE, _ALIKE_WORD = 0.6, 0.8, 0.75
"""The minimum similarity (difflib's ratio) of names in hints, of misspelt names, and of misspelt words. The last is
lower, because one letter of a short word weighs more.
"""


def near(name: str, known: Iterable[str], limit: int = 3) -> list[str]:
    """Returns known names similar to `name`, ignoring case, best first: names that end with `name`, then similar names.

    Without such names, returns names with a similar first word, or else names that contain `name`.
    """
    if len(name) > _LONGEST:
        return []
    by_lower: dict[str, str] = {}
    for candidate in known:
        by_lower.setdefault(candidate.lower(), candidate)
    wanted = name.lower()
    ends = [candidate for candidate in by_lower if candidate.endswith(f"_{wanted}")]  # names without Standard_
    matches = list(dict.fromkeys([*ends, *difflib.get_close_matches(wanted, by_lower, limit, _NEAR)]))[:limit]
    if not matches:
        first_words = {candidate.split("-")[0] for candidate in by_lower}
        likely = set(difflib.get_close_matches(wanted, first_words, len(first_words) + 1, _NEAR))
        matches = [found for found in by_lower if found.split("-")[0] in likely]
    if not matches and wanted:
        matches = [candidate for candidate in by_lower if wanted in candidate][:limit]
    return [by_lower[match] for match in matches]


def alike(name: str, known: Iterable[str]) -> list[str]:
    by_lower = {each.lower(): each for each in known}
    return [by_lower[each] for each in difflib.get_close_matches(name[:_LONGEST].lower(), by_lower, cutoff=_ALIKE)]


def meant(name: str, known: Collection[str]) -> list[str]:
    return list(dict.fromkeys([*called(name, known), *near(name, known)]))


def called(name: str, known: Collection[str]) -> list[str]:
    plain, elsewhere = _plain(name), _other_names()
    return [key for key in known if plain == _plain(key) or plain in elsewhere.get(key, ())]


@functools.cache
def _other_names() -> dict[str, set[str]]:
    return {key: set(map(_plain, names)) for key, names in data.read("other_names.yaml").items()}


@functools.cache
def _other_places() -> dict[str, list[tuple[str, ...]]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for place, names in data.read("other_places.yaml").items():
        for name in names:
            found.setdefault(_plain(name), []).extend([] if place == "nothing" else [tuple(place.split("."))])
    return found


def replaced_by(path: Sequence[str | int], known: Collection[str]) -> list[tuple[str | int, ...]] | None:
    """Returns the settings that replace another tool's setting at `path`, where the keys `known` are valid.

    Returns an empty list if this program has no such setting. Returns None if a known key fits, or if other_places.yaml
    does not have the other tool's setting.
    """
    name, table = str(path[-1])[:_LONGEST], _other_places()
    found = table.get(_plain(".".join(map(str, path[-2:])))) if len(path) > 1 else None
    if found is None and (here := called(name, known)):
        return [(*path[:-1], each) for each in here] if len(here) > 1 else None
    if (
        found is None
        and (len(path) < 3 or path[0] != "operators")
        and not any(is_spelling(name, each) for each in known)
    ):
        found = table.get(_plain(f"{path[0]}.{name}"), table.get(_plain(name)))
    return None if found is None else list(_seen_from(path, found, known))


def _seen_from(
    path: Sequence[str | int], places: Iterable[tuple[str, ...]], known: Collection[str]
) -> Iterator[tuple[str | int, ...]]:
    section = tuple(path[:1]) if len(path) > 1 else ()
    for place in places:
        if place[-1] in known and place[:1] in (section, place):
            yield (*path[:-1], place[-1])
        elif place[:1] != section or section != ("workloadOptions",) or place[1] == path[1]:
            yield (*path[:2], *place[2:]) if place[:2] == (*section, "*") else place


def plainly(name: str, known: Collection[str]) -> bool:
    return bool(called(name, known)) or any(is_spelling(name, each) for each in known)


def is_general(name: str) -> bool:
    """Returns whether a name is meaningless without its section."""
    return name in _OF_SECTIONS


def is_shared(name: str) -> bool:
    """Returns whether several sections or resources have a setting with this name, so that no command may move its
    value.
    """
    return name in (*_OF_SECTIONS, *_OF_RESOURCES)


def is_negated(name: str) -> bool:
    """Returns whether a name negates its other words (`disableLocalAccounts`)."""
    words = words_of(name).replace("-public-key-", "-key-").split("-")[1:-1]
    return not {*words}.isdisjoint(words_of(_NEGATIONS).split("-")[1:-1])


def is_spelling(name: str, known: str) -> bool:
    if called(name, [known]) or known.lower().endswith(f"_{name.lower()}"):
        return True
    if is_shared(name):
        return False
    own, words = _words(name), _words(known)
    if len(own) == len(words):
        return all(
            difflib.get_close_matches(word, [other], 1, _ALIKE_WORD) for word, other in zip(own, words, strict=True)
        )
    is_longer = words_of(name) in words_of(known) or words_of(known) in words_of(name)
    return not is_longer and bool(alike(name, [known]))


def resembles(name: str, known: str) -> bool:
    """Returns whether `name` may mean `known`: both are spelt alike, or one has all words of the other and both have
    the last word of `name`.
    """
    own, words = [word for word in words_of(name).split("-")[1:-1] if word not in _KINDS], words_of(known).split("-")
    fits = own and own[-1] in words and ({*own} <= {*words} or {*words} - {""} <= {*own})
    return is_spelling(name, known) or bool(fits and not is_general(name))


@functools.lru_cache(1000)
def resembled(name: str, known: tuple[str, ...]) -> list[str]:
    """Returns the known names that `name` equals, contains or resembles, or that begin with it.

    A general word does not count as contained: `retentionDays` is not `days`.
    """
    own, words = words_of(name), {words_of(key): key for key in known}
    general = {f"-{word}-" for word in _GENERAL.split()}
    inside = (text for text in words if text in own and (text == own or text not in general))
    begun = (text for text in words if text.startswith(own[:-1]) and len(own) >= _LONG)
    contained = [*inside, *begun]
    return list(dict.fromkeys([*called(name, known), *(words[text] for text in contained), *alike(name, known)]))


def words_of(name: str) -> str:
    """Returns the words of a name in the singular, between hyphens: `-node-count-`."""
    return "".join(f"-{word.removesuffix('s')}" for word in _words(name)) + "-"


def _words(name: str) -> list[str]:
    return [word.lower() for word in re.findall("[A-Z]+s?(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name[:_LONGEST])]


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def mistyped(name: str, known: Collection[str]) -> list[str]:
    """Returns the known names that `name` clearly misspells, best first, except those that it begins with."""
    if name in known:
        return []
    swapped = [each for each in known if sorted(each) == sorted(name)]
    spelt = (each for each in alike(name, known) if is_spelling(name, each) and not name.startswith(each))
    return list(dict.fromkeys((*swapped, *spelt)))


def hint(names: Iterable[str]) -> str:
    listed = ", ".join(names)
    return f"; similar: {listed}" if listed else ""
