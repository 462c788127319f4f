"""Entry point of `python -m simulator` (command/cli.py)."""

import sys

from simulator.host import interrupts


def _command() -> int:
    from simulator.command.cli import main  # the import takes a second, in which the user may press Ctrl-C

    return main()


if __name__ == "__main__":
    sys.exit(interrupts.guarded(_command, "Interrupted. Nothing is lost; to continue, run the same command."))
