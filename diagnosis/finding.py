"""What is found: one cause each, in words for the user."""

from __future__ import annotations

import datetime
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

_LONGEST = 400
_LONGEST_S = 10**9
_NAMED = 2
_SECRET = re.compile(r"(?i)\b(password|passwd|accountkey|sig|client_secret)=[^\s,;&\"']+")
"""Options of mounts and signed addresses, which drivers print in their errors."""
_STRUCTS = re.compile(r"(\S*\{\w+:[^{}\"]*\}\s*)+")
"""Values of Go's structures in messages, which can be lists of hundreds."""
_WIDTH = 80
_ALL = "{nodes}"
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class Finding:
    """One cause for which a workload waits."""

    why: str
    fix: str = ""
    """The command that mends it, or that shows more; empty where it only takes time."""
    lasts: bool = False
    """Whether no time mends it: somebody has to."""
    shared: bool = False
    """Whether it is about what all workloads run on."""
    passing: bool = False
    """Whether nothing is wrong as far as is known, and it changes as time goes."""

    def lines(self) -> list[str]:
        """As it is told, indented below its workload's line; a command stays on one line, to be copied."""
        told = wrapped(f"  waits: {self.why}", "         ")
        command, _, comment = self.fix.partition("    # ")
        whole = f"    do: {self.fix}"
        if len(whole) > _WIDTH and comment:
            return [*told, f"    do: {command}", f"        # {comment}"]
        return [*told, whole] if self.fix else told


@dataclass(frozen=True)
class Obstacle:
    """What keeps pods off one node. Nodes with the same `what` are told together."""

    what: str
    fix: str = ""
    """A command; `{nodes}` in it stands for all that are told together, else it is the first one's."""
    since: str = ""
    """RFC 3339, as Kubernetes has it."""


def together(obstacles: Iterable[tuple[str, Obstacle]]) -> list[Finding]:
    """One finding for each obstacle, with all nodes that have it, given as (node, obstacle).

    A command for all of them names no node for which another command is right.
    """
    found = []
    keyed = (((each.what, _ALL in each.fix), (node, each)) for node, each in obstacles)
    for (what, _), alike in grouped(keyed).items():
        nodes, first = [node for node, _ in alike], alike[0][1]
        fix = first.fix.replace(_ALL, " ".join(nodes))
        since = f" since {clock(first.since)}" if first.since else ""
        found.append(Finding(f"{what} on {listed(nodes, 'node')}{since}", fix))
    return found


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Returns the values of each key, keys and values in the order in which they come."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def joined(*parts: str | None, by: str = ": ") -> str:
    """Returns the parts that are not empty, such as a reason and its message."""
    return by.join(filter(None, parts))


def listed(names: Sequence[str], called: str) -> str:
    """`node a`, `nodes a and b`, `5 nodes, as a`."""
    if len(names) == 1:
        return f"{called} {names[0]}"
    if len(names) <= _NAMED:
        return f"{called}s {' and '.join(names)}"
    return f"{len(names)} {called}s, as {names[0]}"


def clock(time: str) -> str:
    """Hours and minutes of a time as Kubernetes has it, which is RFC 3339 in UTC."""
    return f"{time[11:16]} UTC"


def later(time: str, seconds: float) -> str:
    """So long after a time as Kubernetes has it, and in its form."""
    then = datetime.datetime.fromisoformat(time) + datetime.timedelta(seconds=min(seconds, _LONGEST_S))
    return then.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_past(time: str) -> bool:
    """Whether a time as `later` returns it is over."""
    return time < later(datetime.datetime.now(datetime.UTC).isoformat(), 0)


def wrapped(text: str, indent: str) -> list[str]:
    """Lines that fit a terminal, but for names that are longer; all but the first are indented."""
    return textwrap.wrap(text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def one_line(text: str) -> str:
    """Another program's message without line breaks and secrets; a long one loses its middle, for causes come last."""
    words = _SECRET.sub(r"\1=***", re.sub(r"\s+", " ", text).strip())
    words = _STRUCTS.sub("{...} ", words).strip() if len(words) > _LONGEST else words
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST // 3]} ... {words[-(_LONGEST * 2 // 3) :]}"
