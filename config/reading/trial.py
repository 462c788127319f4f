"""Tries fixes before they are offered: all of them together on the settings as they are, as a reader pastes them.

Each problem has choices of fixes, the best first: its own, the schema's example, taking the key out, and last the stack
file. A fix that leaves its problem, or makes another one of a key that it changes, gives way to the next. What the
chosen ones leave behind is mended by them too. `tried` goes in that order, a step a method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from config.problems.errors import MAX_TOLD, Problem, in_order
from config.problems.fixes import Fix, by_hand, remove_command, rivals_by_hand, secret_command, set_command, text_of
from config.reading.edits import Draft, Keys
from config.reading.offers import Found, Offer
from config.reading.privacy import Privacy
from config.schema.readings import example

_ROUNDS = 7
"""How often they are tried: no problem has more choices."""
_FOLLOWING = 3
"""How often what fixes leave behind is mended by them too."""
_MOST_LEFT = 10
"""How much of it: more is another mistake."""
MAX_LENGTH = 10_000
"""Characters of settings of which it is: reading more takes long, and nobody has written it by hand."""
Look = Callable[[Keys], Iterable[Problem]]
"""Finds all that is wrong with keys."""


def tried(problems: Iterable[Problem], keys: Keys, look: Look, privacy: Privacy) -> list[Problem]:
    """The problems as they may be shown, with fixes that have been tried on `keys`.

    Where there are more than a message tells, that is a mistake in the whole, and no fix of a part is tried.
    """
    trial, draft = _Trial(keys, look, privacy), Draft(keys)
    offers = [Offer(problem, list(trial.choices(problem, draft))) for problem in in_order(problems)]
    before = {offer.told for offer in offers}
    if len(offers) < MAX_TOLD:
        for offer in offers:
            trial.mend_what_moves(offer, before)
        offers = trial.each_mistake_once(offers, before)
        _move_one_to_a_key(offers)
        trial.choose(offers, before)
        if sum(map(len, keys.values())) <= MAX_LENGTH:
            offers = trial.without_rival(trial.complete(offers))
    return [privacy.shown(offer.problem, offer.choices[0]) for offer in offers]


@dataclass(frozen=True)
class _Trial:
    """The settings on which fixes are tried."""

    keys: Keys
    look: Look
    privacy: Privacy

    def after(self, *offers: Offer) -> tuple[Draft, list[Problem]]:
        """The keys once all of them are done, and what is wrong then; what the CLI refuses to do leaves its problem."""
        draft, refused = Draft(self.keys), []
        for offer in offers:
            try:
                draft.apply(offer.tries or Fix(()))
            except ValueError:
                refused.append(offer.problem)
        return draft, [*self.look(draft.keys()), *refused]

    def wrong_after(self, *offers: Offer) -> Found:
        """What is wrong once all of them are done."""
        return {(problem.path, problem.what) for problem in self.after(*offers)[1]}

    def choices(self, problem: Problem, draft: Draft) -> Iterator[Fix]:
        """What might mend a problem, and takes no protection away."""
        found = self._all_choices(problem, draft)
        return (fix for fix in found if not (fix.can_be_tried and self.privacy.weakens(fix)))

    def _all_choices(self, problem: Problem, draft: Draft) -> Iterator[Fix]:
        """What might mend it. Where its value is hidden, a value that may be made of it is not among them."""
        own, path, privacy = problem.mending, problem.path, self.privacy
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

    def mend_what_moves(self, offer: Offer, before: Found) -> None:
        """Adds to the rename of a key what mends its value, if that is wrong too and more is known than the default."""
        moved = offer
        for _ in range(_FOLLOWING if offer.tries and offer.tries.moves else 0):
            draft, found = self.after(moved)
            new = [each for each in found if (each.path, each.what) not in before]
            if moved.is_good({(each.path, each.what) for each in found}, before):
                offer.choices[0] = moved.choices[0]
                return
            fixes = [next(self.choices(each, draft)) for each in new[:_MOST_LEFT]]
            sets = [fix for fix in fixes if fix.can_be_tried and fix.is_command and self._says_more(fix)]
            if not new or len(sets) < len(new):
                return
            for fix in sets:
                moved = Offer(offer.problem, [moved.then(fix)])

    def _says_more(self, fix: Fix) -> bool:
        """Whether it sets what would not be so without it."""
        new = [edit for edit in fix.edits if not edit.removes]
        return not _loses(fix) and all(edit.value != self.privacy.schema(edit.path).get("default") for edit in new)

    def each_mistake_once(self, offers: list[Offer], before: Found) -> list[Offer]:
        """Without those that the rename of another's key mends: vmSku is not set because it is called vmSize.

        A value that cannot stand there is named by that key's words.
        """
        for offer in offers:
            if offer.tries and offer.tries.moves:
                found = self.wrong_after(offer)
                places = offer.paths if not offer.is_good(found, before) else {other.problem.path for other in offers}
                same = [other for other in offers if other.mends(found) and other.problem.path in places]
                offers = [other for other in offers if other is offer or other not in same]
        return offers

    def choose(self, offers: Sequence[Offer], before: Found) -> None:
        """Goes on to the next choices until all are good, done together."""
        for _ in range(_ROUNDS):
            found = self.wrong_after(*offers)
            bad = [offer for offer in offers if not offer.is_good(found, before)]
            for offer in bad:
                self._give_way(offer, mends=offer.mends(found))
            if not bad:
                return

    def _give_way(self, offer: Offer, *, mends: bool) -> None:
        """Takes the next choice that mends the problem by itself too. The first that did beats the stack file."""
        choices = offer.choices
        first = choices.pop(0) if len(choices) > 1 else choices[0]
        alone = Offer(offer.problem, [first])
        is_last = choices[-1] == by_hand(offer.problem.path) and not first.moves
        if mends and is_last and alone.mends(self.wrong_after(alone)):
            choices[-1] = first
        while len(choices) > 1 and offer.tries and not offer.mends(self.wrong_after(offer)):
            choices.pop(0)

    def complete(self, offers: list[Offer]) -> list[Offer]:
        """With what mends the problems that the fixes leave behind, if fewer are left then.

        What was broken may have hidden what does not suit it: that is told beside it, where its fix is good at last.
        """
        first = offers
        rounds: list[tuple[int, list[tuple[Offer, Fix]]]] = []
        for _ in range(_FOLLOWING + 1):
            told = {offer.told for offer in offers}
            draft, found = self.after(*offers)
            asked = {edit.path for offer in offers for edit in offer.asks}
            left = [each for each in in_order(found) if (each.path, each.what) not in told and each.path not in asked]
            rounds.append((len(left), [(offer, offer.choices[0]) for offer in offers]))
            fixes = self._mending(left if len(left) <= _MOST_LEFT else [], draft)
            if not (fixes and any(offer.tries for offer in offers)):
                break
            offers = self._with(fixes, offers)
        best = min(rounds, key=lambda each: each[0])[1]
        for offer, choice in best:
            offer.choices[0] = choice
        left_at_last, before = self.wrong_after(*(offer for offer, _ in best)), {offer.told for offer in first}

        def is_told(offer: Offer) -> bool:
            """Not where it is mended by what else was hidden, and not by its own fix."""
            return offer.is_good(left_at_last, before) and offer.mends(self.wrong_after(*first, offer))

        told_at_last = [offer for offer, _ in best if offer in first or is_told(offer)]
        return [*told_at_last, *self._only_in_words(told_at_last)]

    def _mending(self, left: Iterable[Problem], draft: Draft) -> dict[Problem, Fix]:
        """The commands that mend problems."""
        best = ((each, self._best_choice(each, draft)) for each in left)
        return {each: fix for each, fix in best if fix.can_be_tried and fix.is_command}

    def _best_choice(self, problem: Problem, draft: Draft) -> Fix:
        """The first that is good as the settings are then; where none is yet, the likeliest."""
        then = _Trial(draft.keys(), self.look, self.privacy)
        before = then.wrong_after()
        choices = list(self.choices(problem, draft))
        offers = [Offer(problem, [fix]) for fix in choices if fix.can_be_tried]
        return next((each.choices[0] for each in offers if each.is_good(then.wrong_after(each), before)), choices[0])

    def _with(self, fixes: dict[Problem, Fix], offers: list[Offer]) -> list[Offer]:
        """The offers with fixes of what they leave behind: at the end of the one that causes it, or beside all of them.

        A map that is taken out may be one that is needed, which its fix then sees to.
        """
        able = [offer for offer in offers if offer.tries]
        alone = [(offer, self.wrong_after(offer)) for offer in able[:-1]]
        for problem, fix in fixes.items():
            guilty = [offer for offer, found in alone if (problem.path, problem.what) in found]
            offer = (*guilty, able[-1])[0]
            hidden = Offer(problem, [fix])
            if any(hidden.paths & each.paths for each in offers if each is not offer):
                continue
            if not offer.takes_out and not any(hidden.touches(each) for each in offers):
                offers = [*offers, hidden] if hidden.mends(self.wrong_after(*offers, hidden)) else offers
                continue
            stated = Draft({key: text for key, text in self.keys.items() if text})
            if any(stated.has(edit.path) for edit in fix.edits if edit.path not in offer.paths):
                continue  # what the user has set elsewhere is not for this fix to change
            longer = Offer(offer.problem, [offer.then(fix)])
            # If it neither loses a value nor sets what had to be taken out.
            if not _loses(fix) and longer.mends(self.wrong_after(longer)):
                offer.choices[0] = longer.choices[0]
        return offers

    def _only_in_words(self, offers: list[Offer]) -> Iterator[Offer]:
        """What is wrong with keys that the offers set, and not without these, and no command mends: it was hidden."""
        told = {offer.told for offer in offers}
        sets = {path for offer in offers if offer.tries for path in offer.paths}
        draft, found = self.after(*offers)
        for problem in in_order(found):
            fix = next(self.choices(problem, draft))
            is_new = problem.path in sets and (problem.path, problem.what) not in told
            if is_new and not (fix.can_be_tried and fix.is_command):
                then = _Trial(draft.keys(), self.look, self.privacy)
                without = then.wrong_after(Offer(problem, [remove_command(problem.path)]))
                if problem.path not in {path for path, _ in without}:
                    yield Offer(problem, [fix])

    def without_rival(self, offers: list[Offer]) -> list[Offer]:
        """Without the one that must not be done beside the others, and need not: one of two that take something out.

        Such are a default pool beside other pools, all of which are wrong.
        """
        if len(offers) > 1 and not any(offer.asks for offer in offers) and self.wrong_after(*offers):
            for offer in offers:
                others = [other for other in offers if other is not offer]
                if not self.wrong_after(*others):
                    return others
        return offers


def _loses(fix: Fix) -> bool:
    """Whether it takes out what it does not set below."""
    spread = {edit.path[:-1] for edit in fix.edits if not edit.removes}
    return any(edit.removes and edit.path not in spread for edit in fix.edits)


def _move_one_to_a_key(offers: list[Offer]) -> None:
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
