"""Findings and obstacles: causes, with text for users."""

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
"""Secrets in mount options and signed URLs, which drivers print in errors."""
_STRUCTS = re.compile(r"(\S*\{\w+:[^{}\"]*\}\s*)+")
"""Go structs in messages, which may have hundreds of entries."""
_WIDTH = 80
_ALL = "{nodes}"
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class Finding:
    """One reason why a workload waits, with the command that shows more or fixes the problem."""

    why: str
    fix: str = ""
    """The command that fixes the cause or shows more; empty if the user can only wait."""
    lasts: bool = False
    """Whether the cause stays until a user fixes it."""
    shared: bool = False
    """Whether the cause is in the platform, which all workloads share."""
    passing: bool = False
    """Whether no problem is known and the state changes by itself."""

    def lines(self) -> list[str]:
        """Returns the lines to print below the workload. A command stays on one line, so that users can copy it."""
        causes = wrapped(f"  waits: {self.why}", "         ")
        command, _, comment = self.fix.partition("    # ")
        line = f"    do: {self.fix}"
        if len(line) > _WIDTH and comment:
            return [*causes, f"    do: {command}", *wrapped(f"        # {comment}", "        # ")]
        return [*causes, line] if self.fix else causes


@dataclass(frozen=True)
class Obstacle:
    """A reason why pods cannot use one node. Nodes with the same `what` are reported together."""

    what: str
    fix: str = ""
    """A command. `{nodes}` stands for all nodes that are reported together. Without it, the command is for the first
    node.
    """
    since: str = ""
    """When the obstacle began, in RFC 3339."""
    passing: bool = False


def merge_obstacles(obstacles: Iterable[tuple[str, Obstacle]]) -> list[Finding]:
    """Returns a finding for all nodes with the same obstacle. `obstacles` are pairs of node and obstacle.

    A command for all these nodes stays separate from a command for one node.
    """
    found = []
    keyed = (((each.what, _ALL in each.fix), (node, each)) for node, each in obstacles)
    for (what, _), alike in grouped(keyed).items():
        nodes, first = [node for node, _ in alike], alike[0][1]
        fix = first.fix.replace(_ALL, " ".join(nodes))
        since = f" since {clock(first.since)}" if first.since else ""
        found.append(Finding(f"{what} on {listed(nodes, 'node')}{since}", fix, passing=first.passing))
    return found


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def joined(*parts: str | None, by: str = ": ") -> str:
    """Joins the parts that are not empty, such as a reason and its message."""
    return by.join(filter(None, parts))


def listed(names: Sequence[str], called: str) -> str:
    if len(names) == 1:
        return f"{called} {names[0]}"
    if len(names) <= _NAMED:
        return f"{called}s {' and '.join(names)}"
    return f"{len(names)} {called}s ({names[0]}, ...)"


def clock(time: str) -> str:
    return f"{time[11:16]} UTC"


def later(time: str, seconds: float) -> str:
    then = datetime.datetime.fromisoformat(time) + datetime.timedelta(seconds=min(seconds, _LONGEST_S))
    return then.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_past(time: str) -> bool:
    return time < later(datetime.datetime.now(datetime.UTC).isoformat(), 0)


def wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def one_line(text: str) -> str:
    """Returns a message on one line, without secrets. Cuts the middle of a long message; causes come last."""
    words = _SECRET.sub(r"\1=***", re.sub(r"\s+", " ", text).strip())
    words = _STRUCTS.sub("{...} ", words).strip() if len(words) > _LONGEST else words
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST // 3]} ... {words[-(_LONGEST * 2 // 3) :]}"
