"""`ssh-keygen`: `-A` is satisfied, since simulated servers need no host keys; making other keys is refused."""

from __future__ import annotations

import sys


def main(arguments: list[str]) -> int:
    """0 for -A, else 1 with the reason."""
    if arguments == ["-A"]:
        return 0
    print(
        "simulator: ssh-keygen is simulated for -A only; use the keys that the job's ssh plugin mounts", file=sys.stderr
    )
    return 1
