"""Installs locked tools from npm and the Python package index, and verifies hashes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from simulator.tools.catalogue import Npm, Pip, Tool
from simulator.tools.errors import ToolError
from simulator.tools.workspace import Workspace

_NPM_OPTIONS = ("--ignore-scripts", "--omit=dev", "--omit=optional", "--no-audit", "--no-fund", "--no-update-notifier")
_PIP_OPTIONS = ("--require-hashes", "--no-input", "--disable-pip-version-check", "--compile")
_NPM_PACKAGE, _PIP_PACKAGES = "package", "packages"


def install_npm(tool: Tool, source: Npm, workspace: Workspace) -> None:
    """Installs the package, and links its executable. Raises ToolError with the end of npm's log."""
    _require_node(tool, source)
    package = workspace.folder / _NPM_PACKAGE
    package.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(workspace.module / name, package)
    hint = "npm uses the registry of its configuration (npm config get registry). To try again, run the same command."
    with tempfile.TemporaryDirectory(prefix="npm-", dir=workspace.folder.parent) as cache:
        environment = {"npm_config_cache": cache, **os.environ}  # not npm's cache in the home folder
        command = ["npm", "ci", *_NPM_OPTIONS]
        workspace.run(f"{tool.label} could not be installed", command, cwd=package, environment=environment, hint=hint)
    (workspace.folder / tool.name).symlink_to(Path(_NPM_PACKAGE) / "node_modules" / ".bin" / tool.name)


def install_pip(tool: Tool, source: Pip, workspace: Workspace) -> None:
    """Installs the packages, and links the executable. Raises ToolError with the end of pip's log.

    Stores bytecode next to the sources, because sandboxes read it only there.
    """
    target, lock = workspace.folder / _PIP_PACKAGES, workspace.module / "requirements.txt"
    command = [sys.executable, "-m", "pip", "install", *_PIP_OPTIONS, "--target", str(target), "-r", str(lock)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPYCACHEPREFIX"}
    hint = "pip uses the index of its configuration (pip config list). To try again, run the same command."
    workspace.run(
        f"{tool.label} could not be installed", command, cwd=workspace.folder, environment=environment, hint=hint
    )
    (workspace.folder / tool.name).symlink_to(Path(_PIP_PACKAGES) / "bin" / (source.executable or tool.name))


def packages(executable: Path) -> Path:
    """Returns the folder of an installed tool's Python packages."""
    return executable.resolve().parents[1]


def _require_node(tool: Tool, source: Npm) -> None:
    fix = f"Install Node.js {source.node} or newer, with npm (https://nodejs.org), and run the same command again."
    needs = f"{tool.label} needs Node.js {source.node}, but"
    if missing := [name for name in ("node", "npm") if not shutil.which(name)]:
        raise ToolError(f"{needs} PATH has no `{missing[0]}`.\n{fix}")
    asked = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False)
    answer = asked.stdout.strip() or asked.stderr.strip()
    major = answer.removeprefix("v").split(".")[0]
    if not major.isdecimal() or int(major) < source.node:
        raise ToolError(f"{needs} {shutil.which('node')} reports: {answer}.\n{fix}")
