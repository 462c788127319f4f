"""Runs the `main` of the called command's module."""

from __future__ import annotations

import importlib
import os
import signal
import sys

from simulator.sandbox.library import view


def main() -> int:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # so that `mpirun ... | head` ends without an error
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    try:
        return run(view.load_self()["commands"][os.path.realpath(sys.argv[0])], sys.argv[1:])
    except TimeoutError as error:
        print(error, file=sys.stderr)
        return 1


def run(name: str, arguments: list[str]) -> int:
    return int(importlib.import_module(f"simulator.sandbox.commands.{name}").main(arguments))
