from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

SLOWEST_S = 0.4
"""Pauses grow to this value, because polls take CPU time from others."""


def eventually(condition: Callable[[], Any], what: str = "it happens", seconds: float = 120, every: float = 0.1) -> Any:
    """Fails with `what` after a timeout. The first pause is `every` seconds; later ones get longer."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(every)
        every = _longer(every)
    return value


def eventually_equals(actual: Callable[[], Any], expected: Any, seconds: float = 120) -> None:
    deadline, pause = time.monotonic() + seconds, 0.1
    while (value := actual()) != expected and time.monotonic() < deadline:
        time.sleep(pause)
        pause = _longer(pause)
    assert value == expected


def _longer(pause: float) -> float:
    return max(pause, min(pause * 1.2, SLOWEST_S))
