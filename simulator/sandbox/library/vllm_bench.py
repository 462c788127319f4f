"""`vllm bench serve` in small: really asks the server, and reckons in the seconds that the server says it would take.

Options, table and keys of the JSON are those of vLLM 0.33.0, vllm/benchmarks/serve.py.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulator.sandbox.library.vllm_server import snapshot_of

METRICS = {
    "ttft": ("TTFT", "Time to First Token"),
    "tpot": ("TPOT", "Time per Output Token (excl. 1st token)"),
    "itl": ("ITL", "Inter-token Latency"),
    "e2el": ("E2EL", "End-to-end Latency"),
}
_TIMEOUT_S = 60.0
_TOLD = 10
"""Errors that are told at most."""


@dataclass
class Answers:
    """What has come of the prompts: seconds to the first token, between two, and to the last, of those answered."""

    first: list[float] = field(default_factory=list)
    between: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    duration: float = 0.0


def main(arguments: list[str]) -> int:
    """0 also where prompts have failed, which the table tells."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # the server may be gone
    chosen = _parsed(arguments)
    if os.environ.get("HF_HUB_OFFLINE") == "1" and not snapshot_of(chosen.model).exists():
        print(
            f"OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in "
            f"the cached files: {chosen.model}",
            file=sys.stderr,
        )  # transformers, utils/hub.py, for its tokenizer
        return 1
    print("Starting main benchmark run...")
    print("simulator: no model runs; seconds are estimates, and pass faster than in life")
    answers = _ask(chosen)
    if answers.errors:
        print(f"Failed requests during benchmark run detected (capping to {_TOLD}):")
        for number, error in enumerate(answers.errors[:_TOLD]):
            print(f"Error {number}: {error}")
    result = _result(chosen, answers)
    print("\n".join(_table(chosen, result)))
    if chosen.save_result:
        (Path(chosen.result_dir) / chosen.result_filename).write_text(json.dumps(result))
    return 0


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("vllm bench serve", epilog="the simulator's knows a part of the options")
    parser.add_argument("--backend", choices=["vllm", "openai"], default="openai")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--model", required=True)
    parser.add_argument("--dataset-name", choices=["random"], default="random")
    parser.add_argument("--random-input-len", type=int, default=1024)
    parser.add_argument("--random-output-len", type=int, default=128)
    parser.add_argument("--num-prompts", type=int, default=1000)
    parser.add_argument("--max-concurrency", type=int, required=True)
    parser.add_argument("--temperature", type=float)
    parser.add_argument("--percentile-metrics", default="ttft,tpot,itl")
    parser.add_argument("--metric-percentiles", default="99")
    parser.add_argument("--metadata", nargs="*", default=[])
    parser.add_argument("--result-dir", default=".")
    parser.add_argument("--result-filename", default="result.json")
    for flag in ("--save-result", "--ignore-eos", "--disable-tqdm"):
        parser.add_argument(flag, action="store_true")
    return parser.parse_args(arguments)


def _ask(chosen: argparse.Namespace) -> Answers:
    """All prompts, so many at once; each of those who ask has a clock of its own, in the server's seconds."""
    answers, lock, left = Answers(), threading.Lock(), iter(range(chosen.num_prompts))
    prompt = json.dumps(
        {"model": chosen.model, "prompt": [0] * chosen.random_input_len, "max_tokens": chosen.random_output_len}
    )

    def worker() -> None:
        connection, clock = http.client.HTTPConnection(chosen.host, chosen.port, timeout=_TIMEOUT_S), 0.0
        while True:
            with lock:
                if next(left, None) is None:
                    answers.duration = max(answers.duration, clock)
                    return
            error, took = _one(connection, prompt)
            with lock:
                if error:
                    answers.errors.append(error)
                    continue
                whole = took["first"] + took["between"] * (chosen.random_output_len - 1)
                answers.first.append(took["first"])
                answers.between.append(took["between"])
                answers.whole.append(whole)
            clock += whole

    workers = [threading.Thread(target=worker) for _ in range(min(chosen.max_concurrency, chosen.num_prompts))]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    return answers


def _one(connection: http.client.HTTPConnection, prompt: str) -> tuple[str, dict[str, float]]:
    """What went wrong, and how long the answer would take."""
    try:
        connection.request("POST", "/v1/completions", prompt, {"Content-Type": "application/json"})
        response = connection.getresponse()
        told = json.loads(response.read())
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        return str(error) or type(error).__name__, {}
    return ("" if response.status == http.client.OK else str(told["error"])), told.get("simulated_seconds", {})


def _result(chosen: argparse.Namespace, answers: Answers) -> dict[str, Any]:
    completed, seconds = len(answers.whole), answers.duration or 1e-9
    asked, made = completed * chosen.random_input_len, completed * chosen.random_output_len
    at_once = min(chosen.max_concurrency, chosen.num_prompts)
    result: dict[str, Any] = {
        "date": time.strftime("%Y%m%d-%H%M%S"),
        "endpoint_type": chosen.backend,
        "backend": chosen.backend,
        "label": None,
        "model_id": chosen.model,
        "tokenizer_id": chosen.model,
        "num_prompts": chosen.num_prompts,
        **dict(pair.split("=", 1) for pair in chosen.metadata),
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": chosen.max_concurrency,
        "duration": answers.duration,
        "completed": completed,
        "failed": len(answers.errors),
        "total_input_tokens": asked,
        "total_output_tokens": made,
        "request_throughput": completed / seconds,
        "request_goodput": None,
        "output_throughput": made / seconds,
        "total_token_throughput": (asked + made) / seconds,
        "max_output_tokens_per_s": at_once / min(answers.between, default=1e9),
        "max_concurrent_requests": at_once,
        "simulated": "no model ran; seconds are estimates",
    }
    found = {"ttft": answers.first, "tpot": answers.between, "itl": answers.between, "e2el": answers.whole}
    for metric in chosen.percentile_metrics.split(","):
        values = found[metric] or [0.0]
        result[f"mean_{metric}_ms"] = statistics.fmean(values) * 1000
        result[f"median_{metric}_ms"] = statistics.median(values) * 1000
        result[f"std_{metric}_ms"] = statistics.pstdev(values) * 1000
        for percentile in chosen.metric_percentiles.split(","):
            result[f"p{percentile}_{metric}_ms"] = percentile_of(values, float(percentile)) * 1000
    return result


def percentile_of(values: Sequence[float], percent: float) -> float:
    """As numpy has it: between two values, in proportion."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    below = ordered[int(place)]
    return below + (ordered[min(int(place) + 1, len(ordered) - 1)] - below) * (place - int(place))


def _table(chosen: argparse.Namespace, result: dict[str, Any]) -> Iterator[str]:
    """In vLLM's lines."""
    yield f"{' Serving Benchmark Result ':=^50}"
    for name, value in (
        ("Successful requests:", result["completed"]),
        ("Failed requests:", result["failed"]),
        ("Maximum request concurrency:", result["max_concurrency"]),
        ("Benchmark duration (s):", result["duration"]),
        ("Total input tokens:", result["total_input_tokens"]),
        ("Total generated tokens:", result["total_output_tokens"]),
        ("Request throughput (req/s):", result["request_throughput"]),
        ("Output token throughput (tok/s):", result["output_throughput"]),
        ("Peak output token throughput (tok/s):", result["max_output_tokens_per_s"]),
        ("Peak concurrent requests:", float(result["max_concurrent_requests"])),
        ("Total token throughput (tok/s):", result["total_token_throughput"]),
    ):
        yield f"{name:<40} {value:<10.2f}" if isinstance(value, float) else f"{name:<40} {value:<10}"
    for metric in chosen.percentile_metrics.split(","):
        short, whole = METRICS[metric]
        yield f"{whole:-^50}"
        yield f"{f'Mean {short} (ms):':<40} {result[f'mean_{metric}_ms']:<10.2f}"
        yield f"{f'Median {short} (ms):':<40} {result[f'median_{metric}_ms']:<10.2f}"
        for percentile in chosen.metric_percentiles.split(","):
            yield f"{f'P{percentile} {short} (ms):':<40} {result[f'p{percentile}_{metric}_ms']:<10.2f}"
    yield "=" * 50
