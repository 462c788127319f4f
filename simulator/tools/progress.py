"""Shows the tool that is being installed, its number and duration, live or in plain lines."""

from __future__ import annotations

import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner

_LOOK_SECONDS = 0.5
_PLAIN_SECONDS = 30.0  # between two lines in a log
_LIVE_SECONDS = 0.2
_WIDTH = 80
Step = Callable[[], tuple[str, float]]
"""Returns a text like `[2/7] helm: building`, and the time when that step began."""


def elapsed(seconds: float) -> str:
    """Returns minutes and seconds, as 4:07."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def wrapped(text: str, indent: str) -> list[str]:
    """Returns lines that fit a terminal unless a name is longer. Indents all lines except the first."""
    return textwrap.wrap(text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


class Progress:
    """Writes to standard error, so that a command's output stays clean."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)

    def write(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)

    @contextmanager
    def step(self, number: int, total: int, label: str, record: Path) -> Iterator[Callable[[str], None]]:
        """Shows a step until it ends, and writes it to `record` for waiting processes.

        Yields a function to report progress.
        """
        prefix, start = f"[{number}/{total}] {label}", time.time()
        state = "starting"

        def report(text: str) -> None:
            nonlocal state
            state = text
            record.write_text(f"{prefix}: {state}", encoding="utf-8")

        def step() -> tuple[str, float]:
            return f"{prefix}: {state}", start

        with self.showing(step):
            yield report
        self.write(_line(step))

    @contextmanager
    def following(self, record: Path) -> Iterator[None]:
        self.write("Another process is installing tools; waiting for it. Its step:")
        start = time.time()
        with self.showing(lambda: _read(record) or ("not reported", start)):
            yield

    @contextmanager
    def showing(self, step: Step) -> Iterator[None]:
        stopped = threading.Event()
        worker = self._live if self._console.is_terminal else self._plain
        thread = threading.Thread(target=worker, args=(step, stopped), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()

    def _live(self, step: Step, stopped: threading.Event) -> None:
        spinner = Spinner("dots")
        with Live(spinner, console=self._console, transient=True) as live:
            while not stopped.wait(_LIVE_SECONDS):
                spinner.update(text=_line(step).replace("[", r"\["))
                live.refresh()

    def _plain(self, step: Step, stopped: threading.Event) -> None:
        shown, last_output = "", 0.0
        while not stopped.wait(_LOOK_SECONDS):
            label, now = step()[0].partition(":")[0], time.monotonic()
            if label != shown or now - last_output >= _PLAIN_SECONDS:
                shown, last_output = label, now
                self.write(_line(step))


def _read(file: Path) -> tuple[str, float] | None:
    try:
        return file.read_text(encoding="utf-8"), file.stat().st_mtime
    except FileNotFoundError:
        return None


def _line(step: Step) -> str:
    text, began = step()
    return f"{text} ({elapsed(max(time.time() - began, 0))})"
