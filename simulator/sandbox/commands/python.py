"""`python -m` of an image: emulates modules that the image's recipe names, and runs other modules unchanged."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from simulator.sandbox.library import view
from simulator.sandbox.library.main import run


def main(arguments: list[str]) -> int:
    if arguments[:1] != ["-m"] or len(arguments) == 1:
        print("simulator: only `python -m MODULE` is emulated", file=sys.stderr)
        return 2
    path = Path(f"{arguments[1].replace('.', '/')}.py").resolve()
    command = view.load_self()["commands"].get(str(path))
    if command is None and not path.is_file():
        print(f"/usr/local/bin/python: No module named {arguments[1]}", file=sys.stderr)
        return 1
    if command is None:
        sys.path.insert(0, str(Path.cwd()))
        sys.argv[1:] = arguments[2:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    return run(command, arguments[2:])
