"""Everything that is wrong with a stack's settings, told at once and to the person who has to mend it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

Path = tuple[str | int, ...]
_PLAIN_SEGMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COMMAND_WITHOUT_STACK = re.compile(r"\bpulumi config (?:set|rm) (?!-s )")
_CONFIG_COMMAND = re.compile(r"\bpulumi config (?:set|rm) (?=(?:--\w+ )*'?(\w+))")
"""Up to its options and key; the group is the top-level key."""
MAX_TOLD = 25
"""Problems that one message tells."""
_MAX_WORDS = 400
"""Characters of what is wrong; what the user has set is in its middle."""
_MAX_COMMAND = 1000
"""Characters of a command that can still be pasted, and of a list of what is allowed."""
_MAX_MOVED = 5
"""Values that commands move to another key; more are moved by hand."""


def path_text(path: Path) -> str:
    """A path as `pulumi config --path` reads it: `pools.gpu.taints[0]`, `pools.gpu.labels["a/b"]`."""
    text = str(path[0]) if path else ""  # a top-level key is a name, whatever is in it
    for part in path[1:]:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_SEGMENT.fullmatch(part):
            text += f".{part}"
        else:
            text += '["{}"]'.format(part.replace('"', '\\"'))
    return text


def printable(text: str, most: int = _MAX_WORDS) -> str:
    """The text on one line, without control characters, and without its middle where it is longer than `most`."""
    short = text if len(text) <= most else f"{text[: most // 2]}...{text[-most // 2 :]}"
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in short)


@dataclass(frozen=True)
class Edit:
    """One key that a fix sets or takes out."""

    path: Path
    value: object = None
    """What it is set to; None takes it out."""
    secret: bool = False
    """Whether it is set to a secret, for the reader to fill in; `value` is the one that is known, if any."""

    @property
    def removes(self) -> bool:
        """Whether it takes the key out."""
        return self.value is None and not self.secret

    def __str__(self) -> str:
        """The command; `--` keeps what begins with a dash from being read as an option."""
        key, value = _key(self.path), text_of(self.value)
        if self.removes:
            dashes = "-- " if path_text(self.path).startswith("-") else ""
            return _pasted(f"pulumi config rm {dashes}{key}", self.path, "take", "out of")
        if self.secret:
            return _pasted(f"pulumi config set --secret {key} '<value>'", self.path, "change", "in")
        dashes = "-- " if value.startswith("-") else ""
        return _pasted(f"pulumi config set {key} {dashes}{shlex.quote(value)}", self.path, "change", "in")

    @property
    def is_command(self) -> bool:
        """Whether it can be pasted."""
        return str(self).startswith("pulumi ")


@dataclass(frozen=True)
class Fix:
    """Changes of keys, as data, so that they can be tried before they are offered (config/trial.py)."""

    edits: tuple[Edit, ...]

    def __str__(self) -> str:
        """The commands, one after the other."""
        return " && ".join(map(str, self.edits))

    @property
    def moves(self) -> bool:
        """Whether it sets in one place what it takes out of another."""
        return len({edit.removes for edit in self.edits}) > 1

    def moved(self, here: Path, there: Path) -> Fix:
        """The same where what stands at `here` is set by the key `there`."""
        return Fix(tuple(replace(edit, path=there) if edit.path == here else edit for edit in self.edits))

    @property
    def is_open(self) -> bool:
        """Whether the reader has to choose a value."""
        return any(edit.secret and edit.value is None for edit in self.edits)


def text_of(value: object) -> str:
    """A value as it stands on the command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def set_command(path: Path, value: object) -> Fix:
    """Sets one key."""
    return Fix((Edit(path, value),))


def secret_command(path: Path) -> Fix:
    """Sets a secret, whose value is for the reader to fill in."""
    return Fix((Edit(path, secret=True),))


def remove_command(path: Path) -> Fix:
    """Takes one key out of the stack."""
    return Fix((Edit(path),))


def move_command(path: Path, there: Path, value: object) -> Fix | str:
    """Sets at the key that was meant what stands at another, value by value; in words where those are many."""
    if value is None or value == {} or value == []:
        return remove_command(path)
    edits = list(islice(_values(there, value), _MAX_MOVED + 1))
    if len(edits) > _MAX_MOVED or any(edit.removes for edit in edits):
        rename = f"rename the key {path[-1]} to {there[-1]} under {path_text(path[:-1])} in the stack file"
        return printable(f"{rename}, with all that stands below it")
    moved = Fix((*edits, Edit(path)))
    return moved if all(edit.is_command for edit in moved.edits) else remove_command(path)


def _values(path: Path, value: object) -> Iterator[Edit]:
    """What sets a value, or each that is in a map or a list. Of one that no command sets (null, {}) comes a removal."""
    below = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    if not below and isinstance(value, Mapping | list):
        yield Edit(path)
    elif not isinstance(value, Mapping | list):
        yield Edit(path, value)
    for key, part in below:
        yield from _values((*path, key), part)


def by_hand(path: Path) -> str:
    """Says to change what stands at a path, where no command is known that mends it."""
    return f"change {printable(path_text(path))} in the stack file to what is allowed"


def _pasted(command: str, path: Path, verb: str, where: str) -> str:
    r"""The command, or words where none can be pasted: the CLI has no way to name some keys, nor the shell some values.

    Source: ParsePropertyPath (pulumi/pulumi, sdk/go/common/resource/property_path.go) reads `\"` as a quotation mark,
    so that no quoted key can end in a backslash; a top-level key with a colon would name another project's.
    """
    named = path[0] and ":" not in str(path[0]) and not any(str(part).endswith("\\") for part in path[1:])
    if named and command.isprintable() and len(command) <= _MAX_COMMAND:
        return command
    return f"{verb} {printable(path_text(path))} {where} the stack file"


def _key(path: Path) -> str:
    """The arguments that name a key; a top-level one is never read as a path, whatever is in its name."""
    return f"--path {shlex.quote(path_text(path))}" if len(path) > 1 else shlex.quote(path_text(path))


def first(problems: Iterable[Problem]) -> Iterator[Problem]:
    """As many problems of one kind as any message tells: finding thousands takes time, and they are one mistake."""
    return islice(problems, MAX_TOLD)


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong."""

    path: Path
    """Where, from the top-level key down."""
    what: str
    """What is wrong with it, as the rest of a sentence that begins with the path."""
    allowed: str
    """What may stand there."""
    mending: Fix | str
    """What mends it; in words where no changes of keys do."""
    shows_value: bool = True
    """Whether `what` may hold the value that was set, and `mending` one that is made of it."""
    others: tuple[Fix, ...] = ()
    """What may mend it where `mending` makes another problem, the likeliest first."""
    lacking: Path = ()
    """The map that lacks an entry, where that is what is wrong: an entry of it that is wrong itself may be the one."""
    stack: str = ""
    """The other stack whose settings are wrong; empty for the one that is deployed."""

    @property
    def fix(self) -> str:
        """The command that mends it, ready to paste; in words where no command can."""
        return str(self.mending)

    def moved(self, here: Path, there: Path) -> Problem:
        """The same where what stands at `here` is set by the key `there`."""
        mending = self.mending.moved(here, there) if isinstance(self.mending, Fix) else self.mending
        others = tuple(fix.moved(here, there) for fix in self.others)
        return replace(self, path=there if self.path == here else self.path, mending=mending, others=others)

    def in_stack(self, name: str, keys: Collection[str]) -> Problem:
        """The same where the top-level `keys` are another stack's, which is brought up once they are mended."""
        other = f"-s {shlex.quote(name)} "
        fix = _CONFIG_COMMAND.sub(lambda command: command[0] + (other if command[1] in keys else ""), self.fix)
        mending = self.mending if fix == self.fix else f"{fix} && pulumi up {other.rstrip()}"
        return replace(self, stack=name if self.path and self.path[0] in keys else "", mending=mending)

    def __str__(self) -> str:
        where = f"{path_text(self.path)} of stack {self.stack}" if self.stack else path_text(self.path)
        allowed, fix = printable(self.allowed, _MAX_COMMAND), printable(self.fix, 3 * _MAX_COMMAND)
        return f"{printable(where)} {printable(self.what)}\n    allowed: {allowed}\n    fix:     {fix}"


def naming(stack: str, text: str) -> str:
    """The text with the stack in every command that does not name one: it need not be the one that is selected."""
    name = f"-s {shlex.quote(stack)} " if stack else ""
    return _COMMAND_WITHOUT_STACK.sub(lambda command: command[0] + name, text)


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Each problem once, as they are told and mended."""
    return sorted(set(problems), key=_order)


def _order(problem: Problem) -> tuple[str, list[tuple[int, str]]]:
    """By stack and path; entries of a list from its end, so that one's removal does not move those still to mend."""
    return problem.stack, [(-part, "") if isinstance(part, int) else (0, part) for part in problem.path]


class SettingsError(Exception):
    """A stack's settings cannot be used; `problems` holds every reason found."""

    def __init__(self, problems: Iterable[Problem], stack: str = "") -> None:
        self.problems: Sequence[Problem] = in_order(problems)
        self.stack = stack
        super().__init__(self._text())

    def _text(self) -> str:
        count = len(self.problems)
        where = f" of stack {self.stack}" if self.stack else ""
        head = f"{count} {'problem' if count == 1 else 'problems'} in the settings{where}; nothing was changed"
        told = [f"  {naming(self.stack, str(problem))}" for problem in self.problems[:MAX_TOLD]]
        rest = [f"  and {count - MAX_TOLD} more"] if count > MAX_TOLD else []
        return "\n\n".join([head, *told, *rest])
