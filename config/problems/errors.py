"""Problems of a stack's settings, which are all reported at once, each with its fix."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from config.problems.fixes import (
    MAX_COMMAND,
    Fix,
    Path,
    by_hand,
    choose_by_hand,
    path_text,
    printable,
    remove_command,
    rivals_by_hand,
    settings_in,
    text_of,
)

MAX_TOLD = 25
"""Problems that one message tells."""


def lines(*each: str) -> str:
    """A message of several lines."""
    return "\n".join(each)


def first(problems: Iterable[Problem]) -> Iterator[Problem]:
    """As many problems of one kind as any message tells, and one more, by which the message knows that there are more.

    Finding thousands takes time, and they are one mistake.
    """
    return islice(problems, MAX_TOLD + 1)


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong."""

    path: Path
    """Where, from the top-level key down."""
    what: str
    """What is wrong with it, as the rest of a sentence that begins with the path."""
    allowed: str
    """What may stand there."""
    suggestion: Fix
    """What fixes it."""
    shows_value: bool = True
    """Whether `what` may hold the value that was set, and `suggestion` one that is made of it."""
    lacking: Path = ()
    """The map that lacks an entry, where that is what is wrong: an entry of it that is wrong itself may be the one."""
    stack: str = ""
    """The other stack whose settings are wrong; empty for the one that is deployed."""

    @property
    def is_absent(self) -> bool:
        """Whether the fault is that the key is not set."""
        return self.what.startswith("is not set")

    @property
    def fix(self) -> str:
        """The suggestion for a stack that is selected."""
        return str(self.suggestion)

    def moved(self, here: Path, there: Path) -> Problem:
        """The same where what stands at `here` is set by the key `there`."""
        path = there if self.path == here else self.path
        words = {by_hand(here): by_hand(there), choose_by_hand(path, here): choose_by_hand(path, there)}
        fix = words.get(self.suggestion) or self.suggestion.moved(here, there)
        return replace(self, path=path, suggestion=fix)

    def in_stack(self, name: str, keys: Collection[str]) -> Problem:
        """The same where the top-level `keys` are another stack's, which is brought up once they are mended."""
        theirs = bool(self.path) and self.path[0] in keys
        return replace(self, stack=name if theirs else "", suggestion=self.suggestion.in_stack(name, keys))

    def text(self, stack: str) -> str:
        """What is wrong, what is allowed and what mends it, in commands that name the stack."""
        where = f"{path_text(self.path)} of stack {self.stack}" if self.stack else path_text(self.path)
        allowed, fix = printable(self.allowed, MAX_COMMAND), printable(self.suggestion.text(stack), 3 * MAX_COMMAND)
        if self.stack:
            fix = fix.replace("in the stack file", f"in the stack file of {self.stack}")
        said = f"{printable(where)} {printable(self.what)}".lstrip()  # of the stack itself, no key is wrong
        return f"{said}\n    allowed: {allowed}\n    fix:     {fix}"

    def __str__(self) -> str:
        return self.text("")


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Each problem once, as they are told and mended; those of one key as they were found."""
    return sorted(dict.fromkeys(problems), key=_order)


def _order(problem: Problem) -> tuple[str, list[tuple[int, str]]]:
    """By stack and path; entries of a list from its end, so that one's removal does not move those still to mend."""
    return problem.stack, [(-part, "") if isinstance(part, int) else (0, part) for part in problem.path]


def one_for_each_key(problems: Iterable[Problem]) -> list[Problem]:
    """Returns the problems without those that the move of another key solves, and with one move to each key.

    A key that is missing may have another name, which is the problem then. If several keys set one, with different
    values, only the user knows which to keep.
    """
    found = in_order(problems)
    named = {name for problem in found for name in settings_in(problem.fix) if not problem.is_absent}
    found = [problem for problem in found if not (problem.is_absent and path_text(problem.path) in named)]
    for there in dict.fromkeys(there for problem in found for there in problem.suggestion.targets):
        rivals = [problem for problem in found if there in problem.suggestion.targets]
        found = [problem for problem in found if problem.path != there or there in problem.suggestion.targets]
        found = [replace(each, suggestion=_beside(rivals, each, there)) if each in rivals else each for each in found]
    return found


def _beside(rivals: Sequence[Problem], problem: Problem, there: Path) -> Fix:
    """Returns the fix of one of several problems of keys that stand for the same one."""
    values = {text_of(each.suggestion.targets[there]) for each in rivals}
    if len(values) > 1:
        return rivals_by_hand(there, [each.path for each in rivals])
    is_moved = problem != rivals[0] and problem.suggestion.targets.items() <= rivals[0].suggestion.targets.items()
    return remove_command(problem.path) if is_moved else problem.suggestion


class SettingsError(Exception):
    """A stack's settings cannot be used; `problems` holds every reason found."""

    def __init__(self, problems: Iterable[Problem], stack: str = "") -> None:
        self.problems: Sequence[Problem] = in_order(problems)
        self.stack = stack
        super().__init__(self._text())

    def _text(self) -> str:
        count = len(self.problems)
        where = f" of stack {self.stack}" if self.stack else ""
        counted = f"more than {MAX_TOLD}" if count > MAX_TOLD else str(count)
        problems = "problem" if count == 1 else "problems"
        head = f"{counted} {problems} in the settings{where}; nothing was changed"
        told = [f"  {problem.text(self.stack)}" for problem in self.problems[:MAX_TOLD]]
        rest = ["  The next preview lists more."] if count > MAX_TOLD else []
        return "\n\n".join([head, *told, *rest])
