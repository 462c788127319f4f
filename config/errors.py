"""Everything that is wrong with a stack's settings, told at once and to the person who has to mend it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

Path = tuple[str | int, ...]
_PLAIN_SEGMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COMMAND_WITHOUT_STACK = re.compile(r"\bpulumi config (?:set|rm) (?!-s )")
_CONFIG_COMMAND = re.compile(r"\bpulumi config (?:set|rm) (?=(?:--\w+ )*'?(\w+))")
"""Up to its options and key; the group is the top-level key."""
_MAX_TOLD = 25
"""Problems that one message tells."""
_MAX_WORDS = 400
"""Characters of what is wrong; what the user has set is in its middle."""
_MAX_COMMAND = 1000
"""Characters of a command that can still be pasted, and of a list of what is allowed."""
_HIDDEN = "is not valid (its value is a secret, so it is not shown)"


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


def set_command(path: Path, value: object) -> str:
    """The command that sets one key; `--` keeps values that begin with a dash from being read as options."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    dashes = "-- " if text.startswith("-") else ""
    return _pasted(f"pulumi config set {_key(path)} {dashes}{shlex.quote(text)}", path, "change", "in")


def secret_command(path: Path) -> str:
    """The command that sets a secret, whose value is for the reader to fill in."""
    return _pasted(f"pulumi config set --secret {_key(path)} '<value>'", path, "change", "in")


def remove_command(path: Path) -> str:
    """The command that takes one key out of the stack."""
    dashes = "-- " if path_text(path).startswith("-") else ""
    return _pasted(f"pulumi config rm {dashes}{_key(path)}", path, "take", "out of")


def move_command(path: Path, there: Path, value: object) -> str:
    """The commands that set a value at the key that was meant; the wrong one's removal where they cannot be pasted."""
    commands = set_command(there, value), remove_command(path)
    return " && ".join(commands) if all(each.startswith("pulumi ") for each in commands) else commands[1]


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
    return islice(problems, _MAX_TOLD)


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong."""

    path: Path
    """Where, from the top-level key down."""
    what: str
    """What is wrong with it, as the rest of a sentence that begins with the path."""
    allowed: str
    """What may stand there."""
    fix: str
    """The command that mends it, ready to paste; in words where no command can."""
    shows_value: bool = True
    """Whether `what` and `fix` may hold the value that was set."""
    secret_fix: str = ""
    """The fix without the value, where `fix` alone holds it; by default another secret is to be set."""
    lacking: Path = ()
    """The map that lacks an entry, where that is what is wrong: an entry of it that is wrong itself may be the one."""
    stack: str = ""
    """The other stack whose settings are wrong; empty for the one that is deployed."""

    def moved(self, here: Path, there: Path) -> Problem:
        """The same where what stands at `here` is set by the key `there`."""
        path = there if self.path == here else self.path
        whole = rf" {re.escape(_key(here))}(?= |$)"  # no longer key that begins so
        return replace(self, path=path, fix=re.sub(whole, lambda _: f" {_key(there)}", self.fix))

    def in_stack(self, name: str, keys: Collection[str]) -> Problem:
        """The same where the top-level `keys` are another stack's, which is brought up once they are mended."""
        other = f"-s {shlex.quote(name)} "
        fix = _CONFIG_COMMAND.sub(lambda command: command[0] + (other if command[1] in keys else ""), self.fix)
        if fix != self.fix:
            fix += f" && pulumi up {other.rstrip()}"
        return replace(self, stack=name if self.path and self.path[0] in keys else "", fix=fix)

    def hidden(self) -> Problem:
        """The same without the value, for keys whose value is a secret."""
        if self.secret_fix or not self.shows_value:
            return replace(self, fix=self.secret_fix or self.fix)
        return replace(self, what=_HIDDEN, fix=secret_command(self.path))

    def __str__(self) -> str:
        where = f"{path_text(self.path)} of stack {self.stack}" if self.stack else path_text(self.path)
        allowed, fix = printable(self.allowed, _MAX_COMMAND), printable(self.fix, 3 * _MAX_COMMAND)
        return f"{printable(where)} {printable(self.what)}\n    allowed: {allowed}\n    fix:     {fix}"


def naming(stack: str, text: str) -> str:
    """The text with the stack in every command that does not name one: it need not be the one that is selected."""
    name = f"-s {shlex.quote(stack)} " if stack else ""
    return _COMMAND_WITHOUT_STACK.sub(lambda command: command[0] + name, text)


def _order(problem: Problem) -> tuple[str, list[tuple[int, str]]]:
    """By stack and path; entries of a list from its end, so that one's removal does not move those still to mend."""
    return problem.stack, [(-part, "") if isinstance(part, int) else (0, part) for part in problem.path]


class SettingsError(Exception):
    """A stack's settings cannot be used; `problems` holds every reason found."""

    def __init__(self, problems: Iterable[Problem], stack: str = "") -> None:
        self.problems: Sequence[Problem] = sorted(set(problems), key=_order)
        self.stack = stack
        super().__init__(self._text())

    def _text(self) -> str:
        count = len(self.problems)
        where = f" of stack {self.stack}" if self.stack else ""
        head = f"{count} {'problem' if count == 1 else 'problems'} in the settings{where}; nothing was changed"
        told = [f"  {naming(self.stack, str(problem))}" for problem in self.problems[:_MAX_TOLD]]
        rest = [f"  and {count - _MAX_TOLD} more"] if count > _MAX_TOLD else []
        return "\n\n".join([head, *told, *rest])
