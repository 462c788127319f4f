"""Draws the fabric from the job's log or JSON: `python -m workloads.nccl_bisection [FILE]`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from workloads.nccl_bisection.picture import NoResult, result, svg


def main(arguments: list[str]) -> int:
    about = "Draws the fabric of a pool as SVG."
    parser = argparse.ArgumentParser(prog="python -m workloads.nccl_bisection", description=about)
    parser.add_argument("file", nargs="?", type=Path, help="the job's log, or its JSON; by default standard input")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.file is None:
            text = sys.stdin.read()
        else:
            content = chosen.file.read_bytes()
            text = content.decode(json.detect_encoding(content))  # PowerShell redirects a log as UTF-16
        print(svg(result(text)), end="")
    except (OSError, UnicodeDecodeError, NoResult) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
