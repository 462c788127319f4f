"""Provides executables of the operating system: installed ones, or from a Debian package unpacked without root."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from simulator.tools.catalogue import System, Tool
from simulator.tools.errors import ToolError
from simulator.tools.workspace import Workspace


def provide(tool: Tool, system: System, workspace: Workspace) -> None:
    """Links the executable, installed or from the Debian package, in the folder. Raises ToolError if neither works."""
    folder = workspace.folder
    if installed := shutil.which(tool.name):
        (folder / tool.name).symlink_to(installed)
        return
    package = system.debian_package
    if not shutil.which("apt-get"):
        raise ToolError(f"{tool.name} is not installed. Install it with your package manager (package {package}).")
    if _apt(["download", package], folder) != 0 and os.geteuid() == 0:
        _apt(["update"], folder)  # new containers have no package lists
        _apt(["download", package], folder)
    archives = list(folder.glob("*.deb"))
    if not archives:
        raise ToolError(
            f"{tool.name} is not installed, and its package cannot be fetched: sudo apt-get install {package}"
        )
    subprocess.run(["dpkg", "-x", str(archives[0]), str(folder / "package")], check=True)
    archives[0].unlink()
    (folder / tool.name).symlink_to(Path("package/usr/bin") / tool.name)
    if subprocess.run([folder / tool.name, "--version"], capture_output=True, check=False).returncode != 0:
        raise ToolError(f"{tool.name} of the package {package} does not run here: sudo apt-get install {package}")


def _apt(arguments: list[str], folder: Path) -> int:
    return subprocess.run(["apt-get", "-qq", *arguments], cwd=folder, capture_output=True, check=False).returncode
