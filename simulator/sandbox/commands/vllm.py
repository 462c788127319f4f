"""`vllm` 0.33.0 of the image vllm-openai: `serve` and `bench serve` in small. No model runs; speeds are estimates."""

from __future__ import annotations

import sys

from simulator.sandbox.library import vllm_bench, vllm_server


def main(arguments: list[str]) -> int:
    """The exit code."""
    if arguments[:1] == ["serve"]:
        return vllm_server.main(arguments[1:])
    if arguments[:2] == ["bench", "serve"]:
        return vllm_bench.main(arguments[2:])
    print("simulator: of vllm there are `serve` and `bench serve`", file=sys.stderr)
    return 2
