"""Handles SIGINT and SIGTERM: the first signal interrupts the command, later signals make its cleanup end sooner.

Uses only the standard library, because it must work before other imports.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130  # the exit code of shells


class _Signals:
    """Only the first signal while a command runs raises an exception."""

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
        self.held = False
        if self.came_while_held:
            self.came_while_held = self.heeded = False
            raise KeyboardInterrupt


_signals = _Signals()


def guarded(command: Callable[[], int], message: str) -> int:
    """Runs the command and returns its exit code. Prints the message on SIGINT or SIGTERM (a cancelled CI job).

    After the command has ended, signals have no effect. Ignored signals (SIGINT in the background) stay ignored.
    """
    try:
        _signals.heeded = True
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, _signals)
        code = command()
        _signals.heeded = False
    except KeyboardInterrupt:
        print(message, file=sys.stderr)
        return INTERRUPTED
    return code


@contextmanager
def held() -> Iterator[Callable[[], None]]:
    """Delays signals until the yielded function is called, so that the cleanup knows a process that is starting."""
    _signals.held = True
    try:
        yield _signals.let_go
    finally:
        _signals.held = False


@contextmanager
def hastened(how: Callable[[], None]) -> Iterator[None]:
    """Calls `how` on further signals while the interrupted work ends."""
    _signals.hasten = how
    try:
        yield
    finally:
        _signals.hasten = None
