"""Shows which tool is being made, which of how many it is and for how long: live on a terminal, else as plain lines."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner

_PLAIN_SECONDS = 30.0  # between two signs of life in a log
_LIVE_SECONDS = 0.2


def elapsed(seconds: float) -> str:
    """Minutes and seconds, as 4:07."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


class Progress:
    """Writes to standard error, so that a command's output stays clean."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)

    @contextmanager
    def step(self, number: int, total: int, label: str) -> Iterator[Callable[[str], None]]:
        """Shows one step until it ends; the caller reports what goes on in it through the function given to it."""
        prefix, start = f"[{number}/{total}] {label}", time.monotonic()
        state = "starting"

        def report(text: str) -> None:
            nonlocal state
            state = text

        def line() -> str:
            return f"{prefix}: {state} ({elapsed(time.monotonic() - start)})"

        with self._showing(line):
            yield report
        self.say(line())

    @contextmanager
    def _showing(self, line: Callable[[], str]) -> Iterator[None]:
        stopped = threading.Event()
        worker = self._live if self._console.is_terminal else self._plain
        thread = threading.Thread(target=worker, args=(line, stopped), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()

    def _live(self, line: Callable[[], str], stopped: threading.Event) -> None:
        spinner = Spinner("dots")
        with Live(spinner, console=self._console, transient=True) as live:
            while not stopped.wait(_LIVE_SECONDS):
                spinner.update(text=line().replace("[", r"\["))
                live.refresh()

    def _plain(self, line: Callable[[], str], stopped: threading.Event) -> None:
        pause = 0.5  # the first line comes soon, when it is known what the step does
        while not stopped.wait(pause):
            self.say(line())
            pause = _PLAIN_SECONDS
