"""Fixes of settings as data: changes of keys, commands to run, words to say. They are rendered in one place, here."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

Path = tuple[str | int, ...]
_PLAIN_SEGMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"(password|token|secret)$", re.IGNORECASE)
"""Ends the names of settings that hold a secret."""
_MAX_WORDS = 400
"""Characters of what is wrong; what the user has set is in its middle."""
MAX_COMMAND = 1000
"""Characters of a command that can still be pasted, and of a list of what is allowed."""
_MAX_MOVED = 5
"""Values that commands move to another key; more are moved by hand."""


def path_text(path: Path) -> str:
    """A path as `pulumi config set --path` reads it: `pools.gpu.taints[0]`, `pools.gpu.labels["a/b"]`."""
    text = str(path[0]) if path else ""  # a top-level key is a name, whatever is in it
    for part in path[1:]:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_SEGMENT.fullmatch(part):
            text += f".{part}"
        else:
            text += '["{}"]'.format(part.replace('"', '\\"'))
    return text


def settings_in(text: str) -> list[str]:
    """Returns the settings that a message names; only of what is printed of it, for it may hold a long value."""
    return re.findall(r"[A-Za-z]\w*(?:\.[A-Za-z]\w*|\[[^]]*\])+", printable(text))


def any_name(path: Path) -> str:
    """Returns a path as text, with `<name>` for names that users choose."""
    return path_text(path).replace('["*"]', ".<name>")


def printable(text: str, most: int = _MAX_WORDS) -> str:
    """The text on one line, without control characters, and without its middle where it is longer than `most`."""
    short = text if len(text) <= most else f"{text[: most // 2]}...{text[-most // 2 :]}"
    if short.isprintable():  # the loop below took a fifth of the time of a refusal
        return short
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in short)


@dataclass(frozen=True)
class Edit:
    """One key that a fix sets or takes out."""

    path: Path
    value: object = None
    """What it is set to; None takes it out."""
    secret: bool = False
    """Whether it is set to a secret, for the reader to fill in; `value` is the one that is known, if any."""
    stack: str = ""
    """Whose key it is, where that is not the stack that is deployed."""

    @property
    def removes(self) -> bool:
        """Whether it takes the key out."""
        return self.value is None and not self.secret

    @property
    def asks(self) -> bool:
        """Whether only the reader knows what it is set to."""
        return self.secret and self.value is None

    def text(self, stack: str) -> str:
        """The command; `--` keeps what begins with a dash from being read as an option.

        It names the stack: the one that is deployed need not be the one that is selected.
        """
        name = self.stack or stack
        of_stack = f"-s {shlex.quote(name)} " if name else ""
        key, value = _key(self.path), text_of(self.value)
        if self.removes:
            dashes = "-- " if path_text(self.path).startswith("-") else ""
            return _pasted(f"pulumi config rm {of_stack}{dashes}{key}", self.path, "take", "out of")
        if self.secret:  # without a value, which Pulumi asks for: one that stands for it would be pasted as it is
            return _pasted(f"pulumi config set {of_stack}--secret {key}", self.path, "change", "in")
        dashes = "-- " if value.startswith("-") else ""
        command = f"pulumi config set {of_stack}{key} {dashes}{shlex.quote(value)}"
        return _pasted(command, self.path, "change", "in")

    @property
    def is_command(self) -> bool:
        """Whether it can be pasted."""
        return self.text("").startswith("pulumi ")


@dataclass(frozen=True)
class Run:
    """A command that changes no key."""

    command: str

    def text(self, _stack: str) -> str:
        """As it is."""
        return self.command


@dataclass(frozen=True)
class Say:
    """What to do, where no command does it."""

    words: str

    def text(self, _stack: str) -> str:
        """On one line."""
        return printable(self.words)


@dataclass(frozen=True)
class Fix:
    """What mends a problem, step by step."""

    steps: tuple[Edit | Run | Say, ...]

    def __str__(self) -> str:
        """For a stack that is selected."""
        return self.text("")

    def text(self, stack: str) -> str:
        """The commands, one after the other, or words."""
        return " && ".join(step.text(stack) for step in self.steps)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The changes of keys."""
        return tuple(step for step in self.steps if isinstance(step, Edit))

    @property
    def changes_keys(self) -> bool:
        """Whether it does nothing but change keys of the stack that is deployed."""
        return all(isinstance(step, Edit) and not step.stack for step in self.steps)

    @property
    def moves(self) -> bool:
        """Whether it sets in one place what it takes out of another."""
        return len({edit.removes for edit in self.edits}) > 1

    @property
    def targets(self) -> dict[Path, object]:
        """The keys to which it moves values, with the values."""
        return {edit.path: edit.value for edit in self.edits if not edit.removes} if self.moves else {}

    @property
    def is_command(self) -> bool:
        """Whether it can be pasted."""
        return all(edit.is_command for edit in self.edits)

    def moved(self, here: Path, there: Path) -> Fix:
        """The same where what stands at `here` is set by the key `there`."""
        return self._with_edits(lambda edit: replace(edit, path=there) if edit.path == here else edit)

    def in_stack(self, name: str, keys: Collection[str]) -> Fix:
        """The same where the top-level `keys` are another stack's, which is brought up once they are mended."""
        fix = self._with_edits(lambda edit: replace(edit, stack=name) if _is_theirs(edit, keys) else edit)
        return fix if fix == self else Fix((*fix.steps, Run(f"pulumi up -s {shlex.quote(name)}")))

    def _with_edits(self, change: Callable[[Edit], Edit]) -> Fix:
        return Fix(tuple(change(step) if isinstance(step, Edit) else step for step in self.steps))


def _is_theirs(edit: Edit, keys: Collection[str]) -> bool:
    return edit.path[0] in keys and edit.is_command


def run(command: str) -> Fix:
    """Runs a command."""
    return Fix((Run(command),))


def say(words: str) -> Fix:
    """Says what to do."""
    return Fix((Say(words),))


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


def move_command(path: Path, there: Path, value: object) -> Fix:
    """Sets at the key that was meant what stands at another, value by value; in words where those are many."""
    if value is None or value == {} or value == []:
        return remove_command(path)
    edits = list(islice(_values(there, value), _MAX_MOVED + 1))
    if len(edits) > _MAX_MOVED or any(edit.removes for edit in edits):
        change = f"move {path_text(path)} to {path_text(there)}"
        if len(path) > 1 and path[:-1] == there[:-1]:
            change = f"rename the key {path[-1]} to {there[-1]} under {path_text(path[:-1])}"
        return say(f"{change} in the stack file, with all that stands below it")
    moved = Fix((*edits, Edit(path)))
    return moved if moved.is_command else replace_by_hand(path, {any_name(there): False})


def _values(path: Path, value: object) -> Iterator[Edit]:
    """What sets a value, or each that is in a map or a list. Of one that no command sets (null, {}) comes a removal."""
    below = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    if not below and isinstance(value, Mapping | list):
        yield Edit(path)
    elif not isinstance(value, Mapping | list):
        yield Edit(path, value)
    for key, part in below:
        yield from _values((*path, key), part)


def by_hand(path: Path, verb: str = "change") -> Fix:
    """Says to change what stands at a path, where no command is known that mends it."""
    return say(f"{verb} {printable(path_text(path))} in the stack file to what is allowed")


def replace_by_hand(path: Path, places: Mapping[str, bool]) -> Fix:
    """Says which settings stand for a key that is not one; True marks those that mean the opposite."""
    if not places:
        return say(
            f"remove {printable(path_text(path))} if you do not need it: no setting of this program has a similar name"
        )
    listed = " or ".join(f"{there} (its opposite)" if opposite else there for there, opposite in places.items())
    if any(_SECRET.search(there) for there in places):
        how = "to a new value by `pulumi config set --secret --path`"
        return say(f"set {printable(listed)} {how}, and remove {printable(path_text(path))}")
    return say(f"set {printable(listed)} to what you need in the stack file, and remove {printable(path_text(path))}")


def choose_by_hand(path: Path, there: Path) -> Fix:
    """Says that the setting which a key stands for has another value."""
    where, key = printable(any_name(there)), printable(path_text(path))
    return say(f"{where} has another value: keep the one that you need there in the stack file, and remove {key}")


def rivals_by_hand(there: Path, keys: Collection[Path]) -> Fix:
    """Returns words that name all the keys which stand for one setting, with different values."""
    where, names = printable(any_name(there)), printable(", ".join(map(path_text, keys)))
    return say(
        f"{names} have different values: set {where} to the one that you need in the stack file, and remove them"
    )


def either_by_hand(path: Path, other: str) -> Fix:
    """Returns words for a setting beside one that excludes it, where the user may need either of them."""
    return say(f"remove {printable(path_text(path))}, or {other}, in the stack file")


def _pasted(command: str, path: Path, verb: str, where: str) -> str:
    r"""The command, or words where none can be pasted: the CLI has no way to name some keys, nor the shell some values.

    Source: ParsePropertyPath (pulumi/pulumi, sdk/go/common/resource/property_path.go) reads `\"` as a quotation mark,
    so that no quoted key can end in a backslash; what has two colons is no key.
    """
    named = path[0] and str(path[0]).count(":") < 2 and not any(str(part).endswith("\\") for part in path[1:])
    if named and command.isprintable() and len(command) <= MAX_COMMAND:
        return command
    return f"{verb} {printable(path_text(path))} {where} the stack file"


def _key(path: Path) -> str:
    """The arguments that name a key; a top-level one is never read as a path, whatever is in its name."""
    return f"--path {shlex.quote(path_text(path))}" if len(path) > 1 else shlex.quote(path_text(path))
