"""The folder of finished tools: one folder per tool and key, made elsewhere and moved in when it is complete.

<root>/tools/<key>/...       a finished tool: its executable, named as the tool, and what belongs beside it
<root>/<bin>/<name>          a link to the executable
<root>/staging/, logs/, go/  work in progress, what builds said, Go's caches
<root>/step                  the step of the run that holds the lock, for runs that wait for it
"""

from __future__ import annotations

import fcntl
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from simulator.host import files

_LOOK_S = 0.2


def _locked(file: IO[str]) -> bool:
    """Takes the lock of the file, unless another process has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@dataclass(frozen=True)
class Store:
    """`bin` is named by what a checkout pins, so that checkouts of other versions do not change its links."""

    root: Path
    bin: str = "bin"

    @property
    def staging(self) -> Path:
        return self.root / "staging"

    @property
    def temporary(self) -> Path:
        """For temporary files of pip, npm and Go. There while the lock is held."""
        return self.staging / "tmp"

    @property
    def go(self) -> Path:
        return self.root / "go"

    def log(self, key: str) -> Path:
        path = self.root / "logs" / f"{key}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def folder(self, key: str) -> Path:
        return self.root / "tools" / key

    @property
    def step(self) -> Path:
        """A file with the current step, and the time at which it began as the file's own."""
        return self.root / "step"

    @contextmanager
    def exclusively(
        self, waiting: Callable[[], AbstractContextManager[object]], needed: Callable[[], bool]
    ) -> Iterator[None]:
        """Holds the store's lock, which the kernel frees if the process dies; in `waiting` while another run has it.

        As soon as nothing is `needed` any more, because the other run has made it, the block runs without the lock.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "tools.lock").open("w") as lock:
            if not _locked(lock):
                with waiting():
                    while needed() and not _locked(lock):
                        time.sleep(_LOOK_S)
            if not needed():
                yield
                return
            shutil.rmtree(self.staging, ignore_errors=True)  # what a killed run left half-made
            self.temporary.mkdir(parents=True)
            try:
                yield
            finally:
                shutil.rmtree(self.staging, ignore_errors=True)

    @contextmanager
    def making(self, key: str) -> Iterator[Path]:
        """An empty folder to make a tool in; it becomes the tool's own if all goes well, and is removed if not."""
        work = self.staging / key
        work.mkdir(parents=True)
        try:
            yield work
            self.folder(key).parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(self.folder(key), ignore_errors=True)  # made earlier, but its executable has gone since
            work.rename(self.folder(key))
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def link(self, name: str, executable: Path) -> None:
        """Puts the executable into the folder of all tools; replaces another version's link in one step."""
        target = self.root / self.bin / name
        target.parent.mkdir(parents=True, exist_ok=True)
        files.link(target, executable)
