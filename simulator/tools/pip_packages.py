"""Installs tools from the Python package index: exactly what the lock names, each file checked against its hash.

Bytecode lies beside the sources, wherever this process keeps its own: a sandbox sees nothing else, and can write none.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from simulator.tools.build import end_of, run
from simulator.tools.catalogue import Pip, Tool
from simulator.tools.errors import ToolError

LOCK = "requirements.txt"
_PACKAGES = "packages"
_OPTIONS = ("--require-hashes", "--no-input", "--disable-pip-version-check", "--compile")


def install(tool: Tool, source: Pip, folder: Path, *, modules: Path, log: Path) -> None:
    """Puts the packages and a link to the executable into `folder`; raises ToolError, with the end of pip's log."""
    target, lock = folder / _PACKAGES, modules / source.module / LOCK
    command = [sys.executable, "-m", "pip", "install", *_OPTIONS, "--target", str(target), "-r", str(lock)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPYCACHEPREFIX"}
    with log.open("wb") as output:
        code = run(command, cwd=folder, environment=environment, output=output.fileno())
    if code != 0:
        raise ToolError(
            f"{tool.label} could not be installed (pip exited with {code}). The end of {log}:\n{end_of(log)}\n"
            "pip takes packages from the index that it is set up for (pip config list). "
            "Run the same command to try again."
        )
    (folder / tool.name).symlink_to(Path(_PACKAGES) / "bin" / (source.executable or tool.name))


def packages(executable: Path) -> Path:
    """The folder of packages to which an installed tool belongs."""
    return executable.resolve().parents[1]
