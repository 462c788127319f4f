"""Submits batches of scenarios and reports their state: `python -m workloads.resim`."""

from __future__ import annotations

import sys


def _command() -> int:
    """Runs the command. Imports are in this function, because they take seconds and the user may interrupt them."""
    try:
        from workloads.resim.cli.arguments import main

        return main()
    except KeyboardInterrupt:
        print("interrupted; submitted jobs continue", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(_command())
