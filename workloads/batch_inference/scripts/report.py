"""Tells the results of a batch in short, of the JSON that `vllm bench serve` writes.

Usage: report.py [--check PROMPTS] FILE. With --check it tells nothing but what is wrong, with exit code 1: that fewer
prompts were answered, with which `vllm bench serve` ends well.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

STATISTICS = ("mean", "median", "p95", "p99")
METRICS = {"ttft": "time to first token", "tpot": "time per output token", "itl": "between tokens", "e2el": "all of it"}


def lines(result: Mapping[str, Any]) -> Iterator[str]:
    """What was done, the table of milliseconds, and the rates."""
    yield (
        f"{result['model_id']}: {result['completed']} prompts answered in {result['duration']:.1f} s, "
        f"{result['max_concurrency']} at once"
    )
    yield f"{'ms':<22}" + "".join(f"{name:>11}" for name in STATISTICS)
    for key, name in METRICS.items():
        yield f"{name:<22}" + "".join(f"{result[f'{each}_{key}_ms']:>11.2f}" for each in STATISTICS)
    yield (
        f"requests/s {result['request_throughput']:.2f}, output tokens/s {result['output_throughput']:.0f}, "
        f"all tokens/s {result['total_token_throughput']:.0f}"
    )


def lacking(result: Mapping[str, Any], prompts: int) -> str:
    """What is wrong with the results; empty where nothing is."""
    answered = result["completed"]
    return "" if answered >= prompts else f"{answered} of {prompts} prompts were answered: no results are kept"


def main(arguments: list[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", type=int, metavar="PROMPTS")
    parser.add_argument("file", type=Path)
    chosen = parser.parse_args(arguments)
    result = json.loads(chosen.file.read_text(encoding="utf-8"))
    if chosen.check is None:
        print("\n".join(lines(result)))
    elif wrong := lacking(result, chosen.check):
        print(f"error: {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
