"""Problems of a stack's settings, reported all at once, each with its fix."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from config.problems.fixes import (
    MAX_COMMAND,
    Fix,
    Path,
    choose_by_hand,
    path_text,
    printable,
    remove_command,
    rivals_by_hand,
    settings_in,
    text_of,
)

_PASSWORD = re.compile(r"(?<=://)[^/\s@]*:[^/\s@]*@")
MAX_LISTED = 25


def lines(*each: str) -> str:
    return "\n".join(each)


def first(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yields at most MAX_LISTED + 1 problems, because it takes time to find thousands."""
    return islice(problems, MAX_LISTED + 1)


@dataclass(frozen=True)
class Problem:
    """One error in the settings."""

    path: Path
    what: str
    """The error, as the rest of a sentence that begins with the path."""
    allowed: str
    suggestion: Fix
    shows_value: bool = True
    """Whether `what` and `suggestion` may show the value that was set."""
    lacking: Path = ()
    """The path of the map that lacks an entry, if that is the error. The entry may have been invalid."""
    stack: str = ""
    """The other stack with the wrong settings; empty for the deployed stack."""

    @property
    def is_absent(self) -> bool:
        return self.what.startswith("is not set")

    @property
    def fix(self) -> str:
        return str(self.suggestion)

    def moved(self, here: Path, there: Path) -> Problem:
        path = there if self.path == here else self.path
        is_choice = self.suggestion == choose_by_hand(path, here)
        fix = choose_by_hand(path, there) if is_choice else self.suggestion.moved(here, there)
        return replace(self, path=path, suggestion=fix)

    def in_stack(self, name: str, keys: Collection[str]) -> Problem:
        """Returns the problem as one of stack `name`, which has the top-level `keys`. The fix then also deploys that
        stack.
        """
        theirs = bool(self.path) and self.path[0] in keys
        return replace(self, stack=name if theirs else "", suggestion=self.suggestion.in_stack(name, keys))

    def text(self, stack: str) -> str:
        where = f"{path_text(self.path)} of stack {self.stack}" if self.stack else path_text(self.path)
        allowed, fix = printable(self.allowed, MAX_COMMAND), printable(self.suggestion.text(stack), 3 * MAX_COMMAND)
        if self.stack:
            fix = fix.replace("in the stack file", f"in the stack file of {self.stack}")
        error = f"{printable(where)} {printable(self.what)}".lstrip()  # a problem of the stack itself has no path
        return _PASSWORD.sub("[secret]@", f"{error}\n    allowed: {allowed}\n    fix:     {fix}")

    def __str__(self) -> str:
        return self.text("")


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Returns each problem once, sorted for messages and fixes. Problems of the same key keep their order."""
    return sorted(dict.fromkeys(problems), key=_order)


def _order(problem: Problem) -> tuple[str, list[tuple[int, str]]]:
    """Returns the sort key: stack and path. Of a list, later entries come first: removing one moves those behind it."""
    return problem.stack, [(-part, "") if isinstance(part, int) else (0, part) for part in problem.path]


def one_for_each_key(problems: Iterable[Problem]) -> list[Problem]:
    """Returns the problems without those that the move of another key solves, and with only one move to each key.

    If a required key is set under a wrong name, only the name is reported. If several keys with different values mean
    one setting, the fix asks the user to choose.
    """
    found = in_order(problems)
    named = {name for problem in found for name in settings_in(problem.fix) if not problem.is_absent}
    found = [problem for problem in found if not (problem.is_absent and path_text(problem.path) in named)]
    for there in dict.fromkeys(there for problem in found for there in problem.suggestion.targets):
        rivals = [problem for problem in found if there in problem.suggestion.targets]
        found = [problem for problem in found if problem.path != there or there in problem.suggestion.targets]
        found = [
            replace(each, suggestion=_rival_fix(rivals, each, there)) if each in rivals else each for each in found
        ]
    return found


def _rival_fix(rivals: Sequence[Problem], problem: Problem, there: Path) -> Fix:
    values = {text_of(each.suggestion.targets[there]) for each in rivals}
    if len(values) > 1:
        return rivals_by_hand(there, [each.path for each in rivals])
    is_moved = problem != rivals[0] and problem.suggestion.targets.items() <= rivals[0].suggestion.targets.items()
    return remove_command(problem.path) if is_moved else problem.suggestion


class SettingsError(Exception):
    """An error for invalid settings of a stack; `problems` has all errors."""

    def __init__(self, problems: Iterable[Problem], stack: str = "") -> None:
        self.problems: Sequence[Problem] = in_order(problems)
        self.stack = stack
        super().__init__(self._text())

    def _text(self) -> str:
        count = len(self.problems)
        where = f" of stack {self.stack}" if self.stack else ""
        counted = f"more than {MAX_LISTED}" if count > MAX_LISTED else str(count)
        problems = "problem" if count == 1 else "problems"
        head = f"{counted} {problems} in the settings{where}; nothing was changed"
        listed = [f"  {problem.text(self.stack)}" for problem in self.problems[:MAX_LISTED]]
        rest = ["  The next preview lists more."] if count > MAX_LISTED else []
        return "\n\n".join([head, *listed, *rest])
