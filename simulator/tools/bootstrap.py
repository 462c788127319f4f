"""`python3 -m simulator.tools.bootstrap`: creates the environment of locked dependencies, and prints its folder.

This module needs only the standard library and Python 3.7, so that it can report a Python that is too old. The
environment's folder in the cache is named after a hash of lock files and interpreter, so that checkouts share it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

_OLDEST = (3, 11)
_NEWER = ("python3.14", "python3.13", "python3.12", "python3.11")
_HEARTBEAT_S = 30.0
_COMPLETE = "complete"  # written last; without this file, the environment is incomplete


class _BootstrapError(Exception):
    """An error without a traceback."""


def main(arguments: list[str]) -> int:
    if sys.version_info < _OLDEST:
        return _hand_over(arguments)
    from simulator.host import paths  # needs Python 3.11 or newer

    try:
        locks = [paths.ROOT / name for name in ("requirements.txt", "requirements-dev.txt")]
        print(_environment(paths.cache() / "venv", locks))
    except _BootstrapError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted. To start again, run the same command.", file=sys.stderr)
        return 1
    return 0


def _hand_over(arguments: list[str]) -> int:
    for name in _NEWER:
        newer = shutil.which(name)
        if newer and subprocess.run([newer, "--version"], capture_output=True, check=False).returncode == 0:
            os.execv(newer, [newer, "-m", "simulator.tools.bootstrap", *arguments])  # noqa: S606 - no shell is meant
    version = platform.python_version()
    print(
        f"error: Python 3.11 or newer is needed, but {sys.executable} is {version}, and PATH has none of"
        f" {', '.join(_NEWER)}.\nInstall a newer Python, for example: sudo apt-get install python3.11 python3.11-venv",
        file=sys.stderr,
    )
    return 1


def _environment(folder: Path, locks: list[Path]) -> Path:
    digest = hashlib.sha256((sys.base_prefix + sys.version + platform.machine()).encode())
    for lock in locks:
        digest.update(lock.read_bytes())
    environment = folder / digest.hexdigest()[:16]
    if (environment / _COMPLETE).exists():
        return environment
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another process is creating the Python environment; waiting for it.", file=sys.stderr)
            fcntl.flock(file, fcntl.LOCK_EX)
        if not (environment / _COMPLETE).exists():
            _make(environment, locks)
    return environment


def _make(environment: Path, locks: list[Path]) -> None:
    print("Creating the Python environment (once, one to five minutes).", file=sys.stderr)
    temporary = environment.parent / "tmp"  # the next run removes files of a killed pip
    for folder in (environment, temporary):
        shutil.rmtree(folder, ignore_errors=True)
    temporary.mkdir()
    os.environ["TMPDIR"] = str(temporary)
    if _run([sys.executable, "-m", "venv", str(environment)]) != 0:
        raise _BootstrapError(
            f"{sys.executable} cannot create a virtual environment: its venv module is missing or incomplete.\n"
            f"Install it, for example: sudo apt-get install python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        )
    # Compiling everything takes longer than importing the few modules of the Azure SDK that are used.
    install = ["-m", "pip", "install", "--require-hashes", "--no-compile", "--disable-pip-version-check", "--no-input"]
    for lock in locks:
        install += ["-r", str(lock)]
    if not sys.stderr.isatty():
        install.append("--quiet")
    if _run([str(environment / "bin" / "python"), *install]) != 0:
        raise _BootstrapError(
            "the locked Python dependencies could not be installed; see pip's error above.\n"
            "They come from the package index that pip is set up for (pip config list). Run the same command again."
        )
    shutil.rmtree(temporary)
    (environment / _COMPLETE).touch()


def _run(command: list[str]) -> int:
    """Runs a command with output on standard error. Waits for the end even if interrupted."""
    process, began = subprocess.Popen(command, stdout=sys.stderr.fileno()), time.monotonic()
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(_HEARTBEAT_S)
            print(f"still creating the environment ({time.monotonic() - began:.0f} s)", file=sys.stderr)
    except KeyboardInterrupt:
        with contextlib.suppress(KeyboardInterrupt):
            process.wait()
        raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
