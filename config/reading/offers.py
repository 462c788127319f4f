"""A problem with what might mend it."""

from __future__ import annotations

from dataclasses import dataclass

from config.problems.errors import Problem
from config.problems.fixes import Edit, Fix, Path

Found = set[tuple[Path, str]]


@dataclass
class Offer:
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
        own = [edit for edit in self._edits() if not any(overrides(new, edit) for new in fix.edits)]
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

    def touches(self, other: Offer) -> bool:
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


def overrides(new: Edit, old: Edit) -> bool:
    """Returns whether an edit replaces what another sets below its key, or removes the key."""
    return old.path[: len(new.path)] == new.path and (new.removes or old.path != new.path)
