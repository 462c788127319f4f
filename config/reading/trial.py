"""Tries fixes before they are offered: all of them together on the settings as they are, as a reader pastes them.

A fix that leaves its problem, or makes another one of a key that it changes, gives way to the next: the schema's
example, taking the key out, and last the stack file. What the chosen ones leave behind is mended by them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from config.problems.errors import MAX_TOLD, Problem, in_order
from config.problems.fixes import (
    Edit,
    Fix,
    Path,
    by_hand,
    remove_command,
    rivals_by_hand,
    secret_command,
    set_command,
    text_of,
)
from config.reading.edits import Draft, Keys
from config.reading.privacy import Privacy
from config.schema.readings import example

Look = Callable[[Keys], Iterable[Problem]]
"""Finds all that is wrong with keys."""
Found = set[tuple[Path, str]]
_ROUNDS = 7
"""How often they are tried: no problem has more choices."""
_FOLLOWING = 3
"""How often what fixes leave behind is mended by them too."""
_MOST_LEFT = 10
"""How much of it: more is another mistake."""
_MAX_LENGTH = 10_000
"""Characters of settings of which it is: reading more takes long, and nobody has written it by hand."""


@dataclass
class _Offer:
    """A problem, and what might mend it, the best first; the last is taken without a trial."""

    problem: Problem
    choices: list[Fix]

    @property
    def told(self) -> tuple[Path, str]:
        """What tells the problem from others."""
        return self.problem.path, self.problem.what

    @property
    def tries(self) -> Fix | None:
        """What is to be tried; None for words, and for a secret that only the reader knows."""
        known = [edit for edit in self._edits() if not edit.asks]
        return Fix(tuple(known)) if known else None

    @property
    def asks(self) -> list[Edit]:
        """What is not: secrets that only the reader knows."""
        return [edit for edit in self._edits() if edit.asks]

    def then(self, fix: Fix) -> Fix:
        """What it changes, and behind it what the fix does, whose edit of a key takes the place of its own there, or of
        all below a key.
        """
        own = [edit for edit in self._edits() if not any(_overrides(new, edit) for new in fix.edits)]
        new = {edit.path for edit in self._edits() if not edit.removes} if self.choices[0].moves else ()
        edits = {edit.path: edit for edit in (*own, *fix.edits) if not (edit.removes and edit.path in new)}
        return Fix(tuple(edits.values()))

    @property
    def takes_out(self) -> bool:
        """Whether it takes a key out, which may have been needed."""
        return any(edit.removes for edit in self._edits())

    @property
    def sets(self) -> dict[Path, object]:
        """The keys to which it moves values, with the values."""
        moves = self.tries and self.tries.moves
        return {edit.path: edit.value for edit in self._edits() if not edit.removes} if moves else {}

    @property
    def paths(self) -> set[Path]:
        """The keys that it changes."""
        return {edit.path for edit in self._edits()}

    def touches(self, other: _Offer) -> bool:
        """Whether both change a key, or one of them a key below one of the other's."""
        pairs = ((own, its) for own in self.paths for its in other.paths)
        return any(own[: len(its)] == its or its[: len(own)] == own for own, its in pairs)

    def _edits(self) -> tuple[Edit, ...]:
        fix = self.choices[0]
        return fix.edits if fix.can_be_tried else ()

    def mends(self, found: Found) -> bool:
        """Whether the problem is not among those found."""
        return self.told not in found

    def is_good(self, found: Found, before: Found) -> bool:
        """Whether it mends its problem, and of the keys that it changes nothing is wrong that was not before."""
        edits = self.tries.edits if self.tries else ()
        # What follows an item of a list that is taken out moves up to its place.
        keys = [edit.path for edit in edits if not (edit.removes and isinstance(edit.path[-1], int))]
        spoilt = any(self._is_of(path, key) for path, _ in found - before for key in keys)
        return not self.tries or (self.mends(found) and not spoilt)

    def _is_of(self, path: Path, key: Path) -> bool:
        """Whether a problem at a path is one of a key, of what is below it, or of what a move has put around it."""
        is_around = path and key[: len(path)] == path and (self.choices[0].moves or len(path) >= len(self.problem.path))
        return path[: len(key)] == key or bool(is_around)

    def give_way(self, keys: Keys, look: Look, *, mends: bool) -> None:
        """Takes the next choice that mends the problem by itself too. The first that did beats the stack file."""
        first = self.choices.pop(0) if len(self.choices) > 1 else self.choices[0]
        alone = _Offer(self.problem, [first])
        is_last = self.choices[-1] == by_hand(self.problem.path) and not first.moves
        if mends and is_last and alone.mends(_tried([alone], keys, look)):
            self.choices[-1] = first
        while len(self.choices) > 1 and self.tries and not self.mends(_tried([self], keys, look)):
            self.choices.pop(0)


def tried(problems: Iterable[Problem], keys: Keys, look: Look, privacy: Privacy) -> list[Problem]:
    """The problems as they may be shown, with fixes that have been tried on `keys`.

    Where there are more than a message tells, that is a mistake in the whole, and no fix of a part is tried.
    """
    draft = Draft(keys)
    offers = [_Offer(problem, list(_choices(problem, privacy, draft))) for problem in in_order(problems)]
    before = {offer.told for offer in offers}
    if len(offers) < MAX_TOLD:
        for offer in offers:
            _mend_what_moves(offer, keys, look, privacy, before)
        offers = _each_mistake_once(offers, keys, look, before)
        _move_one_to_a_key(offers)
        _choose(offers, keys, look, before)
        if sum(map(len, keys.values())) <= _MAX_LENGTH:
            offers = _without_rival(_complete(offers, keys, look, privacy), keys, look)
    return [privacy.shown(offer.problem, offer.choices[0]) for offer in offers]


def _mend_what_moves(offer: _Offer, keys: Keys, look: Look, privacy: Privacy, before: Found) -> None:
    """Adds to the rename of a key what mends its value, where that is wrong too, and more is known than the default."""
    moved = offer
    for _ in range(_FOLLOWING if offer.tries and offer.tries.moves else 0):
        draft, found = _after([moved], keys, look)
        new = [each for each in found if (each.path, each.what) not in before]
        if moved.is_good({(each.path, each.what) for each in found}, before):
            offer.choices[0] = moved.choices[0]
            return
        fixes = [next(_choices(each, privacy, draft)) for each in new[:_MOST_LEFT]]
        sets = [fix for fix in fixes if fix.can_be_tried and fix.is_command and _says_more(fix, privacy)]
        if not new or len(sets) < len(new):
            return
        for fix in sets:
            moved = _Offer(offer.problem, [moved.then(fix)])


def _overrides(new: Edit, old: Edit) -> bool:
    """Returns whether an edit replaces what another sets below its key, or removes the key."""
    return old.path[: len(new.path)] == new.path and (new.removes or old.path != new.path)


def _says_more(fix: Fix, privacy: Privacy) -> bool:
    """Whether it sets what would not be so without it."""
    new = [edit for edit in fix.edits if not edit.removes]
    return not _loses(fix) and all(edit.value != privacy.schema(edit.path).get("default") for edit in new)


def _loses(fix: Fix) -> bool:
    """Whether it takes out what it does not set below."""
    spread = {edit.path[:-1] for edit in fix.edits if not edit.removes}
    return any(edit.removes and edit.path not in spread for edit in fix.edits)


def _each_mistake_once(offers: list[_Offer], keys: Keys, look: Look, before: Found) -> list[_Offer]:
    """Without those that the rename of another's key mends: vmSku is not set because it is called vmSize.

    A value that cannot stand there is named by that key's words.
    """
    for offer in offers:
        if offer.tries and offer.tries.moves:
            found = _tried([offer], keys, look)
            places = offer.paths if not offer.is_good(found, before) else {other.problem.path for other in offers}
            same = [other for other in offers if other.mends(found) and other.problem.path in places]
            offers = [other for other in offers if other is offer or other not in same]
    return offers


def _move_one_to_a_key(offers: list[_Offer]) -> None:
    """Leaves it to the user which of several keys sets another one, where their values differ."""
    for path in dict.fromkeys(path for offer in offers for path in offer.sets):
        first, *others = rivals = [offer for offer in offers if path in offer.sets]
        if len({text_of(offer.sets[path]) for offer in rivals}) > 1:
            words = rivals_by_hand(path, [offer.problem.path for offer in rivals])
            for offer in rivals:
                offer.choices[:1] = [words]
        for offer in others:
            if offer.sets and offer.sets.items() <= first.sets.items():
                offer.choices[:1] = [remove_command(offer.problem.path)]


def _choose(offers: Sequence[_Offer], keys: Keys, look: Look, before: Found) -> None:
    """Goes on to the next choices until all are good, done together."""
    for _ in range(_ROUNDS):
        found = _tried(offers, keys, look)
        bad = [offer for offer in offers if not offer.is_good(found, before)]
        for offer in bad:
            offer.give_way(keys, look, mends=offer.mends(found))
        if not bad:
            return


def _complete(offers: list[_Offer], keys: Keys, look: Look, privacy: Privacy) -> list[_Offer]:
    """With what mends the problems that the fixes leave behind, if fewer are left then.

    A map that is taken out may be one that is needed, which its fix then sees to. And what was broken may have hidden
    what does not suit it: that is told beside it, where its fix is good at last.
    """
    first = offers
    rounds: list[tuple[int, list[tuple[_Offer, Fix]]]] = []
    for _ in range(_FOLLOWING + 1):
        told = {offer.told for offer in offers}
        draft, found = _after(offers, keys, look)
        asked = {edit.path for offer in offers for edit in offer.asks}
        left = [each for each in in_order(found) if (each.path, each.what) not in told and each.path not in asked]
        rounds.append((len(left), [(offer, offer.choices[0]) for offer in offers]))
        few = left if len(left) <= _MOST_LEFT else []
        mending = [(each, _best_choice(each, privacy, draft, look)) for each in few]
        fixes = {each: fix for each, fix in mending if fix.can_be_tried and fix.is_command}
        able = [offer for offer in offers if offer.tries]
        if not (fixes and able):
            break
        alone = [(offer, _tried([offer], keys, look)) for offer in able[:-1]]
        for problem, fix in fixes.items():
            guilty = [offer for offer, found in alone if (problem.path, problem.what) in found]
            offer = (*guilty, able[-1])[0]
            hidden = _Offer(problem, [fix])
            if any(hidden.paths & each.paths for each in offers if each is not offer):
                continue
            if not offer.takes_out and not any(hidden.touches(each) for each in offers):
                offers = [*offers, hidden] if hidden.mends(_tried([*offers, hidden], keys, look)) else offers
                continue
            stated = Draft({key: text for key, text in keys.items() if text})
            if any(stated.has(edit.path) for edit in fix.edits if edit.path not in offer.paths):
                continue  # what the user has set elsewhere is not for this fix to change
            longer = _Offer(offer.problem, [offer.then(fix)])
            # If it neither loses a value nor sets what had to be taken out.
            if not _loses(fix) and longer.mends(_tried([longer], keys, look)):
                offer.choices[0] = longer.choices[0]
    best = min(rounds, key=lambda each: each[0])[1]
    for offer, choice in best:
        offer.choices[0] = choice
    left_at_last, before = _tried([offer for offer, _ in best], keys, look), {offer.told for offer in first}

    def is_told(offer: _Offer) -> bool:
        """Not where it is mended by what else was hidden, and not by its own fix."""
        return offer.is_good(left_at_last, before) and offer.mends(_tried([*first, offer], keys, look))

    told_at_last = [offer for offer, _ in best if offer in first or is_told(offer)]
    return [*told_at_last, *_only_in_words(told_at_last, keys, look, privacy)]


def _only_in_words(offers: list[_Offer], keys: Keys, look: Look, privacy: Privacy) -> Iterator[_Offer]:
    """What is wrong with keys that the offers set, and not without these, and no command mends: it was hidden."""
    told, sets = {offer.told for offer in offers}, {path for offer in offers if offer.tries for path in offer.paths}
    draft, found = _after(offers, keys, look)
    for problem in in_order(found):
        fix = next(_choices(problem, privacy, draft))
        is_new = problem.path in sets and (problem.path, problem.what) not in told
        if is_new and not (fix.can_be_tried and fix.is_command):
            without = _tried([_Offer(problem, [remove_command(problem.path)])], draft.keys(), look)
            if problem.path not in {path for path, _ in without}:
                yield _Offer(problem, [fix])


def _best_choice(problem: Problem, privacy: Privacy, draft: Draft, look: Look) -> Fix:
    """The first that is good as the settings are then; where none is yet, the likeliest."""
    keys = draft.keys()
    before = {(each.path, each.what) for each in look(keys)}
    choices = list(_choices(problem, privacy, draft))
    offers = [_Offer(problem, [fix]) for fix in choices if fix.can_be_tried]
    good = (offer.choices[0] for offer in offers if offer.is_good(_tried([offer], keys, look), before))
    return next(good, choices[0])


def _without_rival(offers: list[_Offer], keys: Keys, look: Look) -> list[_Offer]:
    """Without the one that must not be done beside the others, and need not: one of two that take something out.

    Such are a default pool beside other pools, all of which are wrong.
    """
    if len(offers) > 1 and not any(offer.asks for offer in offers) and _tried(offers, keys, look):
        for offer in offers:
            others = [other for other in offers if other is not offer]
            if not _tried(others, keys, look):
                return others
    return offers


def _tried(offers: Iterable[_Offer], keys: Keys, look: Look) -> Found:
    """What is wrong once all of them are done."""
    return {(problem.path, problem.what) for problem in _after(offers, keys, look)[1]}


def _after(offers: Iterable[_Offer], keys: Keys, look: Look) -> tuple[Draft, list[Problem]]:
    """The keys once all of them are done, and what is wrong then; what the CLI refuses to do leaves its problem."""
    draft, refused = Draft(keys), []
    for offer in offers:
        try:
            draft.apply(offer.tries or Fix(()))
        except ValueError:
            refused.append(offer.problem)
    return draft, [*look(draft.keys()), *refused]


def _choices(problem: Problem, privacy: Privacy, draft: Draft) -> Iterator[Fix]:
    """What might mend a problem, and takes no protection away."""
    return (fix for fix in _all_choices(problem, privacy, draft) if not (fix.can_be_tried and privacy.weakens(fix)))


def _all_choices(problem: Problem, privacy: Privacy, draft: Draft) -> Iterator[Fix]:
    """What might mend a problem. Where its value is hidden, a value that may be made of it is not among them."""
    own, path = problem.mending, problem.path
    hidden, (words, is_sure) = privacy.hides(path), privacy.words(problem, draft.keys())
    if not own.can_be_tried:
        yield words or own
        return
    if not (hidden and problem.shows_value):
        if is_sure:
            yield privacy.without_values(own, path) if own.moves else own
        yield from problem.others
    schema = privacy.schema(path)
    known = schema.get("type") not in (None, "object", "array") and not isinstance(path[-1], int)
    if words:
        yield words
        return
    if known and example(schema) is not None and not draft.has(path):
        yield set_command(path, example(schema))
    if known and hidden:
        yield secret_command(path)
    yield by_hand(path)
