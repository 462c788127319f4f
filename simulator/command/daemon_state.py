"""Whether a daemon runs in this home, and what it says of itself; commands read it without importing the daemon."""

from __future__ import annotations

import fcntl
import hashlib
import json
import time
from pathlib import Path
from typing import IO

from simulator.host import paths

_LOCK_TIMEOUT_S = 2


def lock_file() -> Path:
    return paths.home() / "daemon.lock"


def state_file() -> Path:
    return paths.home() / "daemon.json"


def code() -> str:
    """A digest of what a daemon of this checkout is made of, so that one begun before a `git pull` is known as such."""
    digest = hashlib.sha256()
    for folder in ("simulator", "config", "diagnosis", "k8s"):
        for suffix in ("*.py", "*.yaml"):
            for file in sorted((paths.ROOT / folder).rglob(suffix)):
                digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def hold_lock() -> IO[str] | None:
    """The lock that a running daemon holds; None where another daemon has it."""
    deadline = time.monotonic() + _LOCK_TIMEOUT_S
    while (lock := _locked(fcntl.LOCK_EX)) is None and time.monotonic() < deadline:
        time.sleep(0.05)  # others that ask whether a daemon runs hold it for a moment
    return lock


def _locked(kind: int) -> IO[str] | None:
    lock_file().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = lock_file().open("a")
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def running_state() -> dict[str, object] | None:
    """What the running daemon says of itself (`pid`, `ready`, `code`); None when none runs."""
    if shared := _locked(fcntl.LOCK_SH):
        state_file().unlink(missing_ok=True)  # a killed daemon left it; the next one would be taken for ready
        shared.close()
        return None
    try:
        state: dict[str, object] = json.loads(state_file().read_text())
    except FileNotFoundError:  # it has only just begun
        return {"ready": False}
    return state
