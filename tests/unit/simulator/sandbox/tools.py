"""Real programs of this machine, lent to a sandbox whose image has them not, so that a script can try them."""

from __future__ import annotations

from pathlib import Path

from simulator.sandbox import executables
from simulator.sandbox.spec import Mount


def lent(name: str, target: str = "") -> tuple[Mount, ...]:
    """The program, at `target` (else at /usr/bin/<name>), with its libraries. Raises MissingExecutables."""
    (program, place), *libraries = executables.binds((name,))
    return (Mount(Path(program), target or place), *(Mount(Path(source), inside) for source, inside in libraries))
