"""Installs tools from npm: exactly what the lock names, each package checked against the lock's hash of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from simulator.tools.build import end_of, run
from simulator.tools.catalogue import Npm, Tool
from simulator.tools.errors import ToolError

_PACKAGE = "package"
_OPTIONS = ("--ignore-scripts", "--omit=dev", "--omit=optional", "--no-audit", "--no-fund", "--no-update-notifier")


def install(tool: Tool, source: Npm, module: Path, folder: Path, *, log: Path) -> None:
    """Puts the package and a link to its executable into `folder`; raises ToolError, with the end of npm's log."""
    _require_node(tool, source)
    package = folder / _PACKAGE
    package.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(module / name, package)
    with log.open("wb") as output, tempfile.TemporaryDirectory(prefix="npm-", dir=folder.parent) as cache:
        environment = {"npm_config_cache": cache, **os.environ}  # npm's own is in the home folder
        code = run(["npm", "ci", *_OPTIONS], cwd=package, environment=environment, output=output.fileno())
    if code != 0:
        raise ToolError(
            f"{tool.label} could not be installed (npm ci exited with {code}). The end of {log}:\n{end_of(log)}\n"
            "npm takes packages from the registry that it is set up for (npm config get registry). "
            "Run the same command to try again."
        )
    (folder / tool.name).symlink_to(Path(_PACKAGE) / "node_modules" / ".bin" / tool.name)


def _require_node(tool: Tool, source: Npm) -> None:
    """Raises ToolError unless a Node that can run the tool, and npm, are on PATH."""
    mend = (
        f"Install Node.js {source.node} or newer, with npm (https://nodejs.org), put it on PATH and run the same "
        "command again."
    )
    if missing := [name for name in ("node", "npm") if not shutil.which(name)]:
        raise ToolError(f"{tool.label} needs Node.js {source.node}, but there is no `{missing[0]}` on PATH.\n{mend}")
    asked = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False)
    answer = asked.stdout.strip() or asked.stderr.strip()
    major = answer.removeprefix("v").split(".")[0]
    if not major.isdecimal() or int(major) < source.node:
        raise ToolError(f"{tool.label} needs Node.js {source.node}, but {shutil.which('node')} says: {answer}.\n{mend}")
