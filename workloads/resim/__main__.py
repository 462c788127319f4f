"""`python -m workloads.resim`: submits batches of scenarios, and tells how they fare."""

from __future__ import annotations

import sys


def _command() -> int:
    """What it imports takes seconds, in which one may be interrupted already."""
    try:
        from workloads.resim.cli.arguments import main

        return main()
    except KeyboardInterrupt:
        print("interrupted; what was submitted goes on", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(_command())
