"""The daemon's state, for commands that do not import the daemon."""

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
    """Returns a digest of this checkout's code, to recognize a daemon that runs older code."""
    digest = hashlib.sha256()
    for folder in ("simulator", "config", "diagnosis", "k8s"):
        for suffix in ("*.py", "*.yaml"):
            for file in sorted((paths.ROOT / folder).rglob(suffix)):
                digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def hold_lock() -> IO[str] | None:
    """Takes the daemon's lock and returns its file, or None if another daemon holds the lock."""
    deadline = time.monotonic() + _LOCK_TIMEOUT_S
    while (lock := _locked(fcntl.LOCK_EX)) is None and time.monotonic() < deadline:
        time.sleep(0.05)  # a command that checks for a daemon holds the lock briefly
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
    """Returns the state of the running daemon (`pid`, `ready`, `code`), or None if no daemon runs."""
    if shared := _locked(fcntl.LOCK_SH):
        state_file().unlink(missing_ok=True)  # left by a killed daemon: the next daemon would look ready
        shared.close()
        return None
    try:
        state: dict[str, object] = json.loads(state_file().read_text())
    except FileNotFoundError:  # the daemon has just started
        return {"ready": False}
    return state
