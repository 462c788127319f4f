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
    hasten: Callable[[], None] | None = None

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        if self.heeded:
            self.heeded = False
            raise KeyboardInterrupt
        if self.hasten:
            self.hasten()


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
def hastened(how: Callable[[], None]) -> Iterator[None]:
    """While what was interrupted ends, `how` is called on each further signal."""
    _signals.hasten = how
    try:
        yield
    finally:
        _signals.hasten = None
