"""`ssh-keygen`: accepts `-A`, which has no effect because servers need no host keys, and rejects all else."""

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
