"""Container logs in the CRI format, one file per start."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

_FOLLOW_POLL_S = 0.3


class LogFile:
    """The log of one start of a container. Appends lines as `<RFC 3339 time> stdout F <line>`.

    When the file is created, all earlier logs except the last (`kubectl logs --previous`) are deleted.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path: Path | None = None
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Creates the log, also if the container prints nothing."""
        with self._lock:
            self._begun().touch()

    def line(self, text: str) -> None:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
        with self._lock, self._begun().open("a") as file:
            for part in text.splitlines() or [""]:
                file.write(f"{now} stdout F {part}\n")

    def end(self) -> str:
        """Returns the end of the log, for a container's termination message.

        Limits: MaxContainerTerminationMessageLogLines and MaxContainerTerminationMessageLogLength (kubernetes,
        pkg/kubelet/container/runtime.go).
        """
        lines = self._path.read_text().splitlines() if self._path else []
        return select(lines, Wanted(tail=80))[-2048:].decode(errors="ignore")

    def _begun(self) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._path is None:
            earlier = logs_in(self._folder)
            for path in earlier[:-1]:
                path.unlink(missing_ok=True)
            number = int(earlier[-1].stem) + 1 if earlier else 0
            self._path = self._folder / f"{number}.log"
        return self._path


def logs_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"), key=lambda path: int(path.stem))


def read(path: Path, goes_on: Callable[[], bool]) -> Iterator[list[str]]:
    """Yields the log's complete lines, then new lines while `goes_on` returns True."""
    rest, more = "", True
    with path.open() as stream:
        while more:
            more = goes_on()
            *lines, rest = (rest + stream.read()).split("\n")
            yield lines
            if more:
                time.sleep(_FOLLOW_POLL_S)


@dataclass(frozen=True)
class Wanted:
    """The requested part of a log: the API server's PodLogOptions."""

    tail: int | None = None
    since: datetime.datetime | None = None
    limit: int | None = None
    """The limit in bytes."""
    timestamps: bool = False

    @classmethod
    def by(cls, query: Mapping[str, str]) -> Wanted:
        """Parses query parameters. The API server has already validated them."""
        since = None
        if "sinceSeconds" in query:
            since = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=int(query["sinceSeconds"]))
        elif "sinceTime" in query:
            since = datetime.datetime.fromisoformat(query["sinceTime"])
        tail, limit = (int(query[key]) if key in query else None for key in ("tailLines", "limitBytes"))
        return cls(tail, since, limit, query.get("timestamps") == "true")

    def after(self, sent: bytes) -> Wanted:
        return replace(self, tail=None, limit=None if self.limit is None else self.limit - len(sent))


def select(lines: Sequence[str], wanted: Wanted) -> bytes:
    """Returns the requested part of a log. Applies `tail` before `since`, as kubelets do."""
    chosen = lines if wanted.tail is None else lines[max(0, len(lines) - wanted.tail) :]
    text = ""
    for line in chosen:
        stamp, _, _, message = line.split(" ", 3)
        if wanted.since is None or datetime.datetime.fromisoformat(stamp) >= wanted.since:
            text += f"{stamp} {message}\n" if wanted.timestamps else f"{message}\n"
    return text.encode()[: wanted.limit]
