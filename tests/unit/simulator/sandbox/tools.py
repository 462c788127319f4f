from __future__ import annotations

from pathlib import Path

from simulator.sandbox import executables
from simulator.sandbox.spec import Mount


def mounted_program(name: str, target: str = "") -> tuple[Mount, ...]:
    """Returns mounts of a program and its libraries, at `target` or /usr/bin/<name>. Raises MissingExecutables."""
    (program, place), *libraries = executables.binds((name,))
    return (Mount(Path(program), target or place), *(Mount(Path(source), inside) for source, inside in libraries))
