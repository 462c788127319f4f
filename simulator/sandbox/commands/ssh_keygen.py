"""`ssh-keygen`. Accepts only `-A`, which does nothing, because simulated servers need no host keys."""

from __future__ import annotations

import sys


def main(arguments: list[str]) -> int:
    if arguments == ["-A"]:
        return 0
    print(
        "simulator: ssh-keygen simulates only -A; use the keys that the job's ssh plugin mounts",
        file=sys.stderr,
    )
    return 1
