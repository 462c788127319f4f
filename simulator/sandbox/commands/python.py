"""`python -m` of an image whose modules the simulator plays: those that its recipe names by their files."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from simulator.sandbox.library import view


def main(arguments: list[str]) -> int:
    """The exit code of the module."""
    if arguments[:1] != ["-m"] or len(arguments) == 1:
        print("simulator: of Python there is `python -m MODULE` alone", file=sys.stderr)
        return 2
    path = Path(f"{arguments[1].replace('.', '/')}.py").resolve()
    played = view.load_self()["commands"].get(str(path))
    if played is None:
        print(f"/usr/local/bin/python: No module named {arguments[1]}, or none that is played", file=sys.stderr)
        return 1
    return int(importlib.import_module(f"simulator.sandbox.commands.{played}").main(arguments[2:]))
