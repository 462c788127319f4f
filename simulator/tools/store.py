"""The store of finished tools. A tool is built in another folder, and then moved to the folder named after its key.

<root>/tools/<key>/...       a finished tool: its executable, named like the tool, and its other files
<root>/<bin>/<name>          a link to the executable
<root>/staging/, logs/, go/  work in progress, logs of builds, Go's caches
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
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@dataclass(frozen=True)
class Store:
    """The store. `bin` is named after the pinned versions, so that checkouts with other versions keep their links."""

    root: Path
    bin: str = "bin"

    @property
    def staging(self) -> Path:
        return self.root / "staging"

    @property
    def temporary(self) -> Path:
        """A folder for temporary files of pip, npm and Go, which exists while the lock is held."""
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
        """A file with the current step, modified at its start."""
        return self.root / "step"

    @contextmanager
    def exclusively(
        self, waiting: Callable[[], AbstractContextManager[object]], needed: Callable[[], bool]
    ) -> Iterator[None]:
        """Takes the lock of the store. Waits for the lock inside the context `waiting`.

        The kernel releases the lock if the process dies. If another run makes all that is `needed` meanwhile, the block
        runs without the lock.
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
            shutil.rmtree(self.staging, ignore_errors=True)  # a killed run's partial work
            self.temporary.mkdir(parents=True)
            try:
                yield
            finally:
                shutil.rmtree(self.staging, ignore_errors=True)

    @contextmanager
    def making(self, key: str) -> Iterator[Path]:
        """Yields an empty folder. It becomes the folder of the tool, or is removed after an error."""
        work = self.staging / key
        work.mkdir(parents=True)
        try:
            yield work
            self.folder(key).parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(self.folder(key), ignore_errors=True)  # an old folder, without its executable
            work.rename(self.folder(key))
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def link(self, name: str, executable: Path) -> None:
        target = self.root / self.bin / name
        target.parent.mkdir(parents=True, exist_ok=True)
        files.link(target, executable)
