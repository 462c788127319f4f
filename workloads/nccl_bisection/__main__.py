"""`python -m workloads.nccl_bisection [FILE]`: a picture of the fabric, made of the job's log or its JSON."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from workloads.nccl_bisection.picture import NoResult, result, svg


def main(arguments: list[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m workloads.nccl_bisection", description="A fabric as SVG.")
    parser.add_argument("file", nargs="?", type=Path, help="the job's log, or its JSON; by default what is piped in")
    chosen = parser.parse_args(arguments)
    try:
        text = sys.stdin.read() if chosen.file is None else chosen.file.read_text(encoding="utf-8")
        print(svg(result(text)), end="")
    except (OSError, UnicodeDecodeError, NoResult) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
