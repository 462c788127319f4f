"""Waiting for what happens in other processes and threads."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def eventually(condition: Callable[[], Any], what: str = "it happens", seconds: float = 120, every: float = 0.1) -> Any:
    """The first true value of `condition`, asked `every` so many seconds; fails saying `what` did not come true."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(every)
    return value


def eventually_equals(actual: Callable[[], Any], expected: Any, seconds: float = 120) -> None:
    """Waits until `actual` gives what is expected; fails with the difference of what it gave last."""
    deadline = time.monotonic() + seconds
    while (value := actual()) != expected and time.monotonic() < deadline:
        time.sleep(0.1)
    assert value == expected
