"""Fixes of settings as data: edits, commands and text. Only this module renders them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

Path = tuple[str | int, ...]
_PLAIN_SEGMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"(password|token|secret)$", re.IGNORECASE)
_MAX_WORDS = 400
MAX_COMMAND = 1000
"""The maximum length of a command to paste, and of a list of allowed values, in characters."""
_MAX_MOVED = 5
"""The maximum number of values that commands move; users move more by hand."""
ANY = object()
"""A value that only the user knows; commands show `<value>`, which a shell rejects."""


def path_text(path: Path) -> str:
    """Returns a path as `pulumi config set --path` reads it: `pools.gpu.taints[0]`, `pools.gpu.labels["a/b"]`."""
    text = str(path[0]) if path else ""
    for part in path[1:]:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_SEGMENT.fullmatch(part):
            text += f".{part}"
        else:
            text += '["{}"]'.format(part.replace('"', '\\"'))
    return text


def settings_in(text: str) -> list[str]:
    """Returns the settings in the printed part of a message. The rest is ignored, because it may be a long value."""
    return re.findall(r"[A-Za-z]\w*(?:\.[A-Za-z]\w*|\[[^]]*\])+", printable(text))


def any_name(path: Path) -> str:
    return path_text(path).replace('["*"]', ".<name>")


def printable(text: str, most: int = _MAX_WORDS) -> str:
    short = text if len(text) <= most else f"{text[: most // 2]}...{text[-most // 2 :]}"
    if short.isprintable():  # a shortcut, because the join below is slow
        return short
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in short)


@dataclass(frozen=True)
class Edit:
    """A key that a fix sets or removes."""

    path: Path
    value: object = None
    """The new value; None removes the key."""
    secret: bool = False
    """Whether the user enters the value as a secret. `value` is then the secret, if it is known."""
    stack: str = ""

    @property
    def removes(self) -> bool:
        return self.value is None and not self.secret

    def text(self, stack: str) -> str:
        """Returns the command, with `--` before arguments that begin with a dash.

        The command names the stack, because the deployed stack may not be the selected one.
        """
        name = self.stack or stack
        of_stack = f"-s {shlex.quote(name)} " if name else ""
        key, value = _key(self.path), text_of(self.value)
        if self.removes:
            dashes = "-- " if path_text(self.path).startswith("-") else ""
            return _pasted(f"pulumi config rm {of_stack}{dashes}{key}", self.path, "remove", "from")
        if self.secret:  # Pulumi prompts for the value: users would paste a placeholder unchanged
            return _pasted(f"pulumi config set {of_stack}--secret {key}", self.path, "change", "in")
        dashes = "-- " if value.startswith("-") else ""
        given = value if self.value is ANY else shlex.quote(value)
        return _pasted(f"pulumi config set {of_stack}{key} {dashes}{given}", self.path, "change", "in")

    @property
    def is_command(self) -> bool:
        return self.text("").startswith("pulumi ")


@dataclass(frozen=True)
class Say:
    """A fix in words, or a command that changes no key."""

    words: str

    def text(self, _stack: str) -> str:
        return self.words


@dataclass(frozen=True)
class Fix:
    """The fix of a problem, in steps."""

    steps: tuple[Edit | Say, ...]

    def __str__(self) -> str:
        return self.text("")

    def text(self, stack: str) -> str:
        return " && ".join(step.text(stack) for step in self.steps)

    @property
    def edits(self) -> tuple[Edit, ...]:
        return tuple(step for step in self.steps if isinstance(step, Edit))

    def sets(self, path: Path) -> bool:
        chosen = [edit for edit in self.edits if not edit.removes]
        return bool(chosen) and all(edit.path[: len(path)] == path and edit.value is not ANY for edit in chosen)

    @property
    def changes_keys(self) -> bool:
        return all(isinstance(step, Edit) and not step.stack for step in self.steps)

    @property
    def moves(self) -> bool:
        return len({edit.removes for edit in self.edits}) > 1

    @property
    def targets(self) -> dict[Path, object]:
        return {edit.path: edit.value for edit in self.edits if not edit.removes} if self.moves else {}

    @property
    def is_command(self) -> bool:
        return all(edit.is_command for edit in self.edits)

    def moved(self, here: Path, there: Path) -> Fix:
        return self._with_edits(lambda edit: replace(edit, path=there) if edit.path == here else edit)

    def in_stack(self, name: str, keys: Collection[str]) -> Fix:
        """Returns the fix for stack `name`, which has the top-level `keys`. Adds `pulumi up` of that stack."""
        fix = self._with_edits(
            lambda edit: replace(edit, stack=name) if edit.path[0] in keys and edit.is_command else edit
        )
        return fix if fix == self else Fix((*fix.steps, Say(f"pulumi up -s {shlex.quote(name)}")))

    def _with_edits(self, change: Callable[[Edit], Edit]) -> Fix:
        return Fix(tuple(change(step) if isinstance(step, Edit) else step for step in self.steps))


def run(command: str) -> Fix:
    return Fix((Say(command),))


def say(words: str) -> Fix:
    return Fix((Say(printable(words)),))


def text_of(value: object) -> str:
    if value is ANY:
        return "<value>"
    return str(value).lower() if isinstance(value, bool) else str(value)


def set_command(path: Path, value: object) -> Fix:
    return Fix((Edit(path, value),))


def secret_command(path: Path) -> Fix:
    return Fix((Edit(path, secret=True),))


def remove_command(path: Path) -> Fix:
    return Fix((Edit(path),))


def move_command(path: Path, there: Path, value: object) -> Fix:
    if value is None or value == {} or value == []:
        return remove_command(path)
    edits = list(islice(_values(there, value), _MAX_MOVED + 1))
    if len(edits) > _MAX_MOVED or any(edit.removes for edit in edits):
        change = f"move {path_text(path)} to {path_text(there)}"
        if len(path) > 1 and path[:-1] == there[:-1]:
            change = f"rename the key {path[-1]} to {there[-1]} under {path_text(path[:-1])}"
        return say(f"{change} in the stack file, with all keys below it")
    moved = Fix((*edits, Edit(path)))
    return moved if moved.is_command else replace_by_hand(path, {any_name(there): False})


def _values(path: Path, value: object) -> Iterator[Edit]:
    below = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    if not below and isinstance(value, Mapping | list):
        yield Edit(path)
    elif not isinstance(value, Mapping | list):
        yield Edit(path, value)
    for key, part in below:
        yield from _values((*path, key), part)


def by_hand(path: Path) -> Fix:
    return set_command(path, ANY)


def in_file(path: Path) -> Fix:
    """Returns the instruction to change a list or map, which no single command can set."""
    return say(f"change {printable(path_text(path))} in the stack file to an allowed value")


def rename_by_hand(path: Path) -> Fix:
    return say(f"rename the key {path[-1]} under {path_text(path[:-1])} in the stack file")


def replace_by_hand(path: Path, places: Mapping[str, bool]) -> Fix:
    """Returns the instruction to replace an unknown key by a setting in `places`. True marks an opposite meaning."""
    if not places:
        return say(
            f"remove {printable(path_text(path))} if you do not need it: no setting of this program has a similar name"
        )
    listed = " or ".join(f"{there} (its opposite)" if opposite else there for there, opposite in places.items())
    if any(_SECRET.search(there) for there in places):
        how = "to a new value by `pulumi config set --secret --path`"
        return say(f"set {printable(listed)} {how}, and remove {printable(path_text(path))}")
    return say(
        f"in the stack file, set {printable(listed)} to the value that you need, "
        f"and remove {printable(path_text(path))}"
    )


def choose_by_hand(path: Path, there: Path) -> Fix:
    where, key = printable(any_name(there)), printable(path_text(path))
    return say(f"in the stack file, set {where} to the value that you need, and remove {key}, which has another value")


def rivals_by_hand(there: Path, keys: Collection[Path]) -> Fix:
    where, names = printable(any_name(there)), printable(", ".join(map(path_text, keys)))
    return say(
        f"in the stack file, set {where} to the value that you need, and remove {names}, which have different values"
    )


def either_by_hand(path: Path, other: str) -> Fix:
    return say(f"remove {printable(path_text(path))}, or {other}, in the stack file")


def _pasted(command: str, path: Path, verb: str, where: str) -> str:
    r"""Returns the command, or an instruction if the shell or the CLI cannot express it.

    ParsePropertyPath (pulumi/pulumi, sdk/go/common/resource/property_path.go) reads `\"` as a quotation mark, so no
    quoted key can end in a backslash. No key can contain two colons.
    """
    named = path[0] and str(path[0]).count(":") < 2 and not any(str(part).endswith("\\") for part in path[1:])
    if named and command.isprintable() and len(command) <= MAX_COMMAND:
        return command
    return f"{verb} {printable(path_text(path))} {where} the stack file"


def _key(path: Path) -> str:
    """Returns the arguments for a key; a top-level key is never parsed as a path."""
    return f"--path {shlex.quote(path_text(path))}" if len(path) > 1 else shlex.quote(path_text(path))
