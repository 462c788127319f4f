"""Summarizes the JSON results of `vllm bench serve`.

With --check, it only reports an error if fewer prompts were answered, which `vllm bench serve` ignores.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

STATISTICS = ("mean", "median", "p95", "p99")
METRICS = {"ttft": "time to first token", "tpot": "time per output token", "itl": "between tokens", "e2el": "in total"}


def lines(result: Mapping[str, Any]) -> Iterator[str]:
    """Yields the number of prompts, a table of milliseconds, and the rates."""
    yield (
        f"{result['model_id']}: {result['completed']} prompts answered in {result['duration']:.1f} s, "
        f"{result['max_concurrency']} in parallel"
    )
    yield f"{'ms':<22}" + "".join(f"{name:>11}" for name in STATISTICS)
    for key, name in METRICS.items():
        yield f"{name:<22}" + "".join(f"{result[f'{each}_{key}_ms']:>11.2f}" for each in STATISTICS)
    yield (
        f"requests/s {result['request_throughput']:.2f}, output tokens/s {result['output_throughput']:.0f}, "
        f"all tokens/s {result['total_token_throughput']:.0f}"
    )


def error(result: Mapping[str, Any], prompts: int) -> str:
    """Returns the error if prompts were not answered, or an empty text."""
    answered = result["completed"]
    return "" if answered >= prompts else f"only {answered} of {prompts} prompts were answered; no results are stored"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", type=int, metavar="PROMPTS", help="number of prompts that must be answered")
    parser.add_argument("file", type=Path, help="the JSON file")
    chosen = parser.parse_args(arguments)
    result = json.loads(chosen.file.read_text(encoding="utf-8"))
    if chosen.check is None:
        print("\n".join(lines(result)))
    elif what := error(result, chosen.check):
        print(f"error: {what}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
