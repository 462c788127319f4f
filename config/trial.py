"""Tries fixes before they are offered: all of them together on the settings as they are, as a reader pastes them.

A fix that leaves its problem, or makes another one of a key that it changes, gives way to the next: the schema's
example, taking the key out, and last the stack file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from config.edits import Draft, Keys
from config.errors import MAX_TOLD, Fix, Path, Problem, by_hand, in_order, remove_command, secret_command, set_command
from config.privacy import Privacy
from config.translate import example

Mending = Fix | str
Look = Callable[[Keys], Iterable[Problem]]
"""Finds all that is wrong with keys."""
Found = set[tuple[Path, str]]
_ROUNDS = 7
"""How often they are tried: no problem has more choices."""


@dataclass
class _Offer:
    """A problem, and what might mend it, the best first; the last is taken without a trial."""

    problem: Problem
    choices: list[Mending]

    @property
    def tries(self) -> Fix | None:
        """What is to be tried; None for words, and for a secret that only the reader knows."""
        fix = self.choices[0]
        return fix if isinstance(fix, Fix) and not fix.is_open else None

    def mends(self, found: Found) -> bool:
        """Whether the problem is not among those found."""
        return (self.problem.path, self.problem.what) not in found

    def is_good(self, found: Found, before: Found) -> bool:
        """Whether it mends its problem, and of the keys that it changes nothing is wrong that was not before."""
        edits = self.tries.edits if self.tries else ()
        # What follows an item of a list that is taken out moves up to its place.
        keys = [edit.path for edit in edits if not (edit.removes and isinstance(edit.path[-1], int))]
        spoilt = any(self._is_of(path, key) for path, _ in found - before for key in keys)
        return not self.tries or (self.mends(found) and not spoilt)

    def _is_of(self, path: Path, key: Path) -> bool:
        """Whether a problem at a path is one of a key, of what is below it, or of what was moved with it."""
        return path[: len(key)] == key or (key[: len(path)] == path and len(path) >= len(self.problem.path))

    def give_way(self, keys: Keys, look: Look, *, mends: bool) -> None:
        """Takes the next choice that mends the problem by itself too. The first that did beats the stack file."""
        first = self.choices.pop(0) if len(self.choices) > 1 else self.choices[0]
        if mends and isinstance(self.choices[-1], str):
            self.choices[-1] = first
        while len(self.choices) > 1 and self.tries and not self.mends(_tried([self], keys, look)):
            self.choices.pop(0)


def tried(problems: Iterable[Problem], keys: Keys, look: Look, privacy: Privacy) -> list[Problem]:
    """The problems as they may be shown, with fixes that have been tried on `keys`.

    Where there are more than a message tells, that is a mistake in the whole, and no fix of a part is tried.
    """
    draft = Draft(keys)
    offers = [_Offer(problem, list(_choices(problem, privacy, draft))) for problem in in_order(problems)]
    before = {(offer.problem.path, offer.problem.what) for offer in offers}
    for _ in range(_ROUNDS if len(offers) < MAX_TOLD else 0):
        found = _tried(offers, keys, look)
        bad = [offer for offer in offers if not offer.is_good(found, before)]
        for offer in bad:
            offer.give_way(keys, look, mends=offer.mends(found))
        if not bad:
            break
    return [privacy.shown(offer.problem, offer.choices[0]) for offer in offers]


def _tried(offers: Iterable[_Offer], keys: Keys, look: Look) -> Found:
    """What is wrong once all of them are done; what the CLI refuses to do leaves its problem."""
    draft, refused = Draft(keys), []
    for offer in offers:
        try:
            draft.apply(offer.tries or Fix(()))
        except ValueError:
            refused.append(offer.problem)
    return {(problem.path, problem.what) for problem in (*look(draft.keys()), *refused)}


def _choices(problem: Problem, privacy: Privacy, draft: Draft) -> Iterator[Mending]:
    """What might mend a problem. Where its value is hidden, a value that may be made of it is not among them."""
    own, path = problem.mending, problem.path
    if isinstance(own, str):
        yield own
        return
    hidden = privacy.hides(path)
    if not (hidden and problem.shows_value):
        yield privacy.without_values(own, path) if own.moves else own
        yield from problem.others
    schema = privacy.schema(path)
    known = schema.get("type") not in (None, "object", "array") and not isinstance(path[-1], int)
    if known and example(schema) is not None:
        yield set_command(path, example(schema))
    if draft.has(path):
        yield remove_command(path)
    if known and hidden:
        yield secret_command(path)
    yield by_hand(path)
