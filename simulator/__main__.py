"""`python -m simulator`: see command/cli.py."""

import sys

from simulator.host import interrupts


def _command() -> int:
    from simulator.command.cli import main  # takes a second, in which one may be interrupted already

    return main()


if __name__ == "__main__":
    sys.exit(interrupts.guarded(_command, "interrupted; nothing is lost, the same command goes on from here"))
