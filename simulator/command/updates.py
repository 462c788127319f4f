"""Finds running updates of this checkout's stacks, during which the simulator must not stop or restart."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from simulator.host import paths


@dataclass(frozen=True)
class Update:
    """A process that needs the simulator for a stack."""

    stack: str
    command: str
    pid: int
    since: float
    """Seconds since 1970."""

    def __str__(self) -> str:
        since = time.strftime("%H:%M:%S", time.localtime(self.since))
        return f"`{self.command}` is working on stack {self.stack} (pid {self.pid}, since {since})"


def under_way() -> list[Update]:
    ours = list(_of_make())
    known = {update.stack for update in ours}
    plain = (update for update in of_pulumi() if update.stack not in known)  # `make up` did not start these
    return [update for update in (*ours, *plain) if update.pid != os.getpid()]


def of_pulumi(stack: str = "*") -> list[Update]:
    """Returns running updates of a stack, or of all stacks, from the locks of Pulumi's file backend."""
    return [update for update in locked(stack) if is_working_pulumi(update.pid)]


def locked(stack: str = "*") -> list[Update]:
    """Returns the updates that have a lock, whether they run or not."""
    found = []
    for file in (paths.home() / "state" / ".pulumi" / "locks").rglob(f"{stack}/*.json"):
        with suppress(FileNotFoundError):  # the update has ended
            pid, since = int(json.loads(file.read_text())["pid"]), file.stat().st_mtime
            found.append(Update(file.parent.name, "pulumi", pid, since))
    return found


def is_working_pulumi(pid: int) -> bool:
    """Returns whether the process is pulumi and runs. A killed process (a zombie) does not run."""
    try:
        name, _, rest = Path("/proc", str(pid), "stat").read_text().partition("(")[2].rpartition(")")
    except OSError:  # it ended
        return False
    return name == "pulumi" and rest.split()[0] not in ("Z", "X")


@contextmanager
def announced(command: str, stack: str) -> Iterator[None]:
    """Announces that a command needs the simulator until the block ends, even while it does not run pulumi.

    The announcement is a file lock, which ends with the process.
    """
    file = _announcements() / f"{os.getpid()}.json"
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(json.dumps({"stack": stack, "command": command}))
        lock.flush()
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


def _announcements() -> Path:
    return paths.home() / "commands"


def _of_make() -> Iterator[Update]:
    for file in _announcements().glob("*.json"):
        with suppress(FileNotFoundError), file.open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                content = json.loads(lock.read() or "{}")
                since = file.stat().st_mtime
                yield Update(content.get("stack", "?"), content.get("command", "make"), int(file.stem), since)
            else:
                file.unlink(missing_ok=True)  # the process was killed
