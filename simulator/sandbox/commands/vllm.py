"""`vllm serve` and `vllm bench serve` of the image vllm-openai. No model runs; speeds are estimates."""

from __future__ import annotations

import sys

from simulator.sandbox.library import recipe, view, vllm_bench, vllm_server

_COMMANDS = {"serve": vllm_server.main, "bench serve": vllm_bench.main}


def main(arguments: list[str]) -> int:
    """Returns the exit code."""
    program = view.program("vllm")
    for name, run in _COMMANDS.items():
        words = name.split()
        if arguments[: len(words)] == words:
            return run(recipe.parser(program[name]).parse_args(arguments[len(words) :]), program)
    print("simulator: of vllm, `serve` and `bench serve` are simulated", file=sys.stderr)
    return 2
