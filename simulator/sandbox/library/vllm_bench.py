"""`vllm bench serve`: sends the prompts to the server, and uses the seconds that the server estimates.

Table and JSON keys are those of vLLM 0.33.0, vllm/benchmarks/serve.py. All answers of a run take equally long, so means
and percentiles are equal.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simulator.sandbox.library.recipe import Recipe
from simulator.sandbox.library.vllm_server import snapshot_of

_TIMEOUT_S = 60.0
_TOLD = 10
"""The maximum number of errors to print."""


def main(chosen: Namespace, program: Recipe) -> int:
    """Runs the benchmark. Returns 0 even if prompts failed; the table shows them."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # the server may have disconnected
    if os.environ.get("HF_HUB_OFFLINE") == "1" and not snapshot_of(chosen.model).exists():
        print(
            f"OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in "
            f"the cached files: {chosen.model}",
            file=sys.stderr,
        )  # transformers, utils/hub.py, for its tokenizer
        return 1
    print("Starting main benchmark run...")
    print("simulator: no model runs; seconds are estimates, and pass faster than on real Azure")
    result, errors = _ask(chosen)
    if errors:
        print(f"Failed requests during benchmark run detected (capping to {_TOLD}):")
        print("\n".join(f"Error {number}: {error}" for number, error in enumerate(errors[:_TOLD])))
    print("\n".join(_table(chosen, program, result)))
    if chosen.save_result:
        (Path(chosen.result_dir) / chosen.result_filename).write_text(json.dumps(result))
    return 0


def _ask(chosen: Namespace) -> tuple[dict[str, Any], list[str]]:
    """Sends all prompts, `max_concurrency` at a time. Returns the results, and an error for each that failed."""
    connection = http.client.HTTPConnection(chosen.host, chosen.port, timeout=_TIMEOUT_S)
    errors, took, duration = list[str](), {"first": 0.0, "between": 0.0}, 0.0
    for start in range(0, chosen.num_prompts, chosen.max_concurrency):
        count = min(chosen.max_concurrency, chosen.num_prompts - start)
        prompts = [[0] * chosen.random_input_len] * count
        asked = {"model": chosen.model, "prompt": prompts, "max_tokens": chosen.random_output_len}
        try:
            connection.request("POST", "/v1/completions", json.dumps(asked), {"Content-Type": "application/json"})
            response = connection.getresponse()
            told = json.loads(response.read())
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            errors += [str(error) or type(error).__name__] * count
            continue
        if response.status != http.client.OK:
            errors += [str(told["error"])] * count
            continue
        now = told["simulated_seconds"]
        took = {name: max(took[name], now[name]) for name in took}
        duration += now["first"] + now["between"] * (chosen.random_output_len - 1)
    return _result(chosen, took, duration, len(errors)), errors


def _result(chosen: Namespace, took: dict[str, float], duration: float, failed: int) -> dict[str, Any]:
    completed, seconds = chosen.num_prompts - failed, duration or 1e-9
    prompts, made = completed * chosen.random_input_len, completed * chosen.random_output_len
    result: dict[str, Any] = {
        "date": time.strftime("%Y%m%d-%H%M%S"),
        "backend": chosen.backend,
        "model_id": chosen.model,
        "num_prompts": chosen.num_prompts,
        **dict(pair.split("=", 1) for pair in chosen.metadata),
        "max_concurrency": chosen.max_concurrency,
        "duration": duration,
        "completed": completed,
        "failed": failed,
        "total_input_tokens": prompts,
        "total_output_tokens": made,
        "request_throughput": completed / seconds,
        "output_throughput": made / seconds,
        "total_token_throughput": (prompts + made) / seconds,
        "simulated": "no model ran; seconds are estimates",
    }
    whole = took["first"] + took["between"] * (chosen.random_output_len - 1)
    found = {"ttft": took["first"], "tpot": took["between"], "itl": took["between"], "e2el": whole}
    for metric in chosen.percentile_metrics.split(","):
        result |= {f"{name}_{metric}_ms": found[metric] * 1000 for name in _statistics(chosen)}
    return result


def _statistics(chosen: Namespace) -> list[str]:
    return ["mean", "median", *(f"p{each}" for each in chosen.metric_percentiles.split(","))]


def _table(chosen: Namespace, program: Recipe, result: dict[str, Any]) -> Iterator[str]:
    yield f"{' Serving Benchmark Result ':=^50}"
    for key, name in program["table"].items():
        yield f"{name:<40} {result[key]:<10.2f}" if isinstance(result[key], float) else f"{name:<40} {result[key]:<10}"
    for metric in chosen.percentile_metrics.split(","):
        yield f"{program['metrics'][metric]:-^50}"
        for name in _statistics(chosen):
            yield f"{f'{name.capitalize()} {metric.upper()} (ms):':<40} {result[f'{name}_{metric}_ms']:<10.2f}"
    yield "=" * 50
