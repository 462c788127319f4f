"""Container logs: files in the CRI format."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator
from pathlib import Path


class LogFile:
    """Appends lines as `<RFC 3339 time> stdout F <line>`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def begin(self) -> None:
        """There is a log from now on, if only an empty one: of a container that runs and says nothing."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch()

    def line(self, text: str) -> None:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock, self.path.open("a") as file:
            for part in text.splitlines() or [""]:
                file.write(f"{now} stdout F {part}\n")


def select(lines: list[str], *, tail: int | None, timestamps: bool) -> Iterator[str]:
    for line in lines[-tail:] if tail is not None else lines:
        stamp, _, rest = line.partition(" ")
        text = rest.split(" ", 2)[2] if rest.count(" ") >= 2 else ""
        yield f"{stamp} {text}" if timestamps else text
