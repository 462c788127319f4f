"""Marks the child processes of the simulator in their environment, restarts them, and ends them."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from simulator.host import paths

MARK = "SIMULATOR_CHILD_OF"
"""The environment variable that identifies leftover processes of a killed simulator."""
_RESTART_PAUSE = 1.0
_STOP_GRACE_S = 2  # long enough to flush; a kill loses no acknowledged write
_TAIL_LINES = 15
_MAX_LOG_BYTES = 32 * 1024 * 1024


def marked_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns child processes' environment variables. Tests set GOGC to reduce Go's garbage collection."""
    keep = {key: os.environ[key] for key in ("PATH", "HOME", "LANG", "TMPDIR", "GOGC") if key in os.environ}
    return {**keep, **(extra or {}), MARK: str(paths.home().resolve())}


def leftovers() -> list[int]:
    """Returns the ids of processes with this checkout's mark.

    A process that just started may be missing: Linux reports its start before its environment is readable (fs/exec.c
    closes files first).
    """
    wanted = f"{MARK}={paths.home().resolve()}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0") and int(entry.name) != os.getpid():
                found.append(int(entry.name))
        except OSError:  # it ended, or belongs to another user
            continue
    return found


def end_leftovers(timeout_s: float = 10) -> list[int]:
    """Ends the processes of a killed simulator. Returns the ids of processes that survive SIGKILL.

    An ending process loses its environment, and so its mark, before it closes its ports. So this tracks processes by
    id. It searches again, because an ending daemon may have restarted a process.
    """
    found: set[int] = set()
    for number in (signal.SIGTERM, signal.SIGKILL):
        signalled, deadline = set[int](), time.monotonic() + timeout_s
        while True:
            new = set(leftovers()) - signalled
            for pid in new:
                _signal(pid, number)
            signalled |= new
            found |= new
            running = [pid for pid in found if _runs(pid)]
            if not (new or running) or time.monotonic() >= deadline:
                break
            time.sleep(0.05)
    return running


def _runs(pid: int) -> bool:
    """Returns whether the process runs. A zombie runs if its other threads still hold resources."""
    try:
        state = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]
        return state not in ("Z", "X") or len(list(Path("/proc", str(pid), "task").iterdir())) > 1
    except OSError:
        return False


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


@dataclass
class Process:
    """One executable that restarts if it ends before `stop`."""

    name: str
    argv: Sequence[str]
    log: Path
    env: Mapping[str, str] = field(default_factory=dict)
    restarts: int = 0
    _popen: subprocess.Popen[bytes] | None = None
    _started: float = 0.0

    def start(self) -> None:
        if self.alive:
            return
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > _MAX_LOG_BYTES:
            self.log.replace(self.log.with_suffix(".old"))
        with self.log.open("ab") as log:
            self._popen = subprocess.Popen(
                list(self.argv),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=marked_environment(self.env),
                start_new_session=True,
            )
        self._started = time.monotonic()

    @property
    def alive(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    def revive(self) -> bool:
        if self._popen is None or self.alive or time.monotonic() - self._started < _RESTART_PAUSE:
            return False
        self.restarts += 1
        self.start()
        return True

    def stop(self, timeout_s: float = 10) -> None:
        popen, self._popen = self._popen, None
        if popen is None or popen.poll() is not None:
            return
        popen.terminate()
        try:
            popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            popen.kill()
            popen.wait()

    def tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]) if self.log.exists() else ""


class Supervisor:
    """Keeps processes running. Stops them in reverse order."""

    def __init__(self) -> None:
        self.processes: list[Process] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)
        self._thread.start()

    def start(self, process: Process) -> Process:
        process.start()
        with self._lock:
            self.processes.append(process)
        return process

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        with self._lock:
            for process in reversed(self.processes):
                process.stop(_STOP_GRACE_S)
            self.processes.clear()

    def _watch(self) -> None:
        while not self._stop.wait(0.5):
            with self._lock:
                for process in self.processes:
                    process.revive()
