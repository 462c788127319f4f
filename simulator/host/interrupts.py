"""SIGINT and SIGTERM of the commands: the first interrupts one, later ones hasten its end, none breaks it.

Needs nothing but the standard library: it is at work before anything else is imported.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130  # as shells have it


class _Signals:
    """What a signal means from now on. Exceptions come from the first one alone, and only while a command runs."""

    heeded = False
    held = False
    came_while_held = False
    hasten: Callable[[], None] | None = None

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        if self.heeded and self.held:
            self.came_while_held = True
        elif self.heeded:
            self.heeded = False
            raise KeyboardInterrupt
        elif self.hasten:
            self.hasten()

    def let_go(self) -> None:
        """Raises KeyboardInterrupt if a signal has come."""
        self.held = False
        if self.came_while_held:
            self.came_while_held = self.heeded = False
            raise KeyboardInterrupt


_signals = _Signals()


def guarded(command: Callable[[], int], told: str) -> int:
    """The command's exit code; after an interruption, also one by SIGTERM (a cancelled CI job, `timeout`), says `told`.

    One that comes when the command is done changes nothing. What is ignored (SIGINT in the background) stays ignored.
    """
    try:
        _signals.heeded = True
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, _signals)
        code = command()
        _signals.heeded = False
    except KeyboardInterrupt:
        print(told, file=sys.stderr)
        return INTERRUPTED
    return code


@contextmanager
def held() -> Iterator[Callable[[], None]]:
    """Signals interrupt only once the function is called: a process that is begun is then known to whoever ends it."""
    _signals.held = True
    try:
        yield _signals.let_go
    finally:
        _signals.held = False


@contextmanager
def hastened(how: Callable[[], None]) -> Iterator[None]:
    """While what was interrupted ends, `how` is called on each further signal."""
    _signals.hasten = how
    try:
        yield
    finally:
        _signals.hasten = None
