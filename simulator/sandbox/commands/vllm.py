"""`vllm serve` and `vllm bench serve` of the image vllm-openai. No model runs; speeds are estimates.

The server answers faster than on real Azure, but prints and returns the times on real Azure. The load generator uses
the returned times. All answers of a run take equally long, so means and percentiles are equal.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

from simulator.sandbox.library import http_api, recipe, view
from simulator.sandbox.library.http_api import Answer, Request
from simulator.sandbox.library.recipe import Recipe, Values

_LOOKS_S, _TIMEOUT_S, _SHOWN_ERRORS = 1.0, 60.0, 10


def main(arguments: list[str]) -> int:
    program = view.program("vllm")
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # the client may have disconnected
    for name, run in {"serve": _serve, "bench serve": _bench}.items():
        words = name.split()
        if arguments[: len(words)] == words:
            return run(recipe.parser(program[name]).parse_args(arguments[len(words) :]), program)
    print("simulator: only `vllm serve` and `vllm bench serve` are simulated", file=sys.stderr)
    return 2


def _serve(chosen: Namespace, program: Recipe) -> int:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    values = _values(chosen, program)
    if text := values.error():
        print(text, "RuntimeError: Engine core initialization failed. See root cause above.", sep="\n", file=sys.stderr)
        return 1
    if not values["cached"]:
        part = _snapshot_of(chosen.model).with_name(f"{os.getpid()}.incomplete")
        part.mkdir(parents=True)
        _say(values, "fetched", values["download_s"])
        (part / "config.json").write_text(json.dumps({"simulated": chosen.model}))
        part.rename(_snapshot_of(chosen.model))
    _say(values, "loaded", values["read_s"])
    _say(values, "compiled", values["compile_s"])
    http_api.serve(chosen.host, chosen.port, lambda request: _answer(values, request))
    _say(values, "serving", 0)
    while len(_healthy(view.load())) == values["held"]:
        time.sleep(_LOOKS_S)
    print("vllm.v1.engine.exceptions.EngineDeadError: a GPU is lost", file=sys.stderr, flush=True)
    os._exit(1)  # a normal exit may abort while threads answer requests


def _values(chosen: Namespace, program: Recipe) -> Values:
    known, numbers, model = view.load(), view.numbers(), chosen.model
    held, facts = _healthy(known), numbers["language_models"].get(model)
    product = held[0]["product"] if held else ""
    own = {
        "held": len(held),
        "known": facts is not None,
        "memory_tbs": next((tbs for name, tbs in numbers["memory_tbs"].items() if name in product), 1.0),
        "cached": _snapshot_of(model).exists(),
        "token": bool(os.environ.get("HF_TOKEN")),
    }
    size = numbers["skus"].get(known.node_of(known.me)["sku"], {})
    return Values(program, {**vars(chosen), **numbers["serving"], **size, **(facts or {}), **own})


def _healthy(known: view.View) -> list[view.Json]:
    return [gpu for gpu in known.gpus_of(known.me) if gpu["healthy"]]


def _snapshot_of(name: str) -> Path:
    """Returns the cache folder of a model (huggingface_hub, file_download.py, repo_folder_name)."""
    home = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface"))
    return home / "hub" / f"models--{name.replace('/', '--')}" / "snapshots" / "simulated"


def _say(values: Values, point: str, seconds: float) -> None:
    """Waits a part of `seconds` (the time on real Azure), then prints."""
    time.sleep(min(seconds / values.recipe["faster"], values.recipe["longest_s"]))
    print("\n".join(values.lines(point, {"seconds": seconds})))


def _answer(values: Values, request: Request) -> Answer:
    """Answers a request. Its prompts must have the same length."""
    if request.method == "GET":
        return (200, None) if request.path == "/health" else (404, {"detail": "Not Found"})
    body = json.loads(request.body)
    prompts, output = body["prompt"], body["max_tokens"]
    took = Values(values.recipe, {**values, "count": len(prompts), "input": len(prompts[0]), "output": output})
    time.sleep(min(took["first"] + (output - 1) * took["between"], values.recipe["longest_answer_s"]))
    return 200, {"first": took["first"], "between": took["between"]}


def _bench(chosen: Namespace, program: Recipe) -> int:
    """Returns 0 even if prompts failed. The table shows how many failed."""
    if os.environ.get("HF_HUB_OFFLINE") == "1" and not _snapshot_of(chosen.model).exists():
        print(program["offline"].format(model=chosen.model), file=sys.stderr)
        return 1
    print("Starting main benchmark run...")
    print("simulator: no model runs; seconds are estimates, and pass faster than on real Azure")
    errors, duration, first, between = list[str](), 0.0, 0.0, 0.0
    for start in range(0, chosen.num_prompts, chosen.max_concurrency):
        count = min(chosen.max_concurrency, chosen.num_prompts - start)
        try:
            took = _ask(chosen, count)
        except (OSError, http.client.HTTPException) as error:
            errors += [str(error) or type(error).__name__] * count
        else:
            first, between = max(first, took["first"]), max(between, took["between"])
            duration += took["first"] + took["between"] * (chosen.random_output_len - 1)
    if errors:
        print(f"Failed requests during benchmark run detected (capping to {_SHOWN_ERRORS}):")
        print("\n".join(f"Error {number}: {error}" for number, error in enumerate(errors[:_SHOWN_ERRORS])))
    known = {**vars(chosen), "first": first, "between": between, "failed": len(errors), "duration": duration}
    result = _result(chosen, Values(program, known))
    print(program["table"].format_map(result))
    if chosen.save_result:
        (Path(chosen.result_dir) / chosen.result_filename).write_text(json.dumps(result))
    return 0


def _ask(chosen: Namespace, count: int) -> dict[str, float]:
    connection = http.client.HTTPConnection(chosen.host, chosen.port, timeout=_TIMEOUT_S)
    body = json.dumps({"prompt": [[0] * chosen.random_input_len] * count, "max_tokens": chosen.random_output_len})
    try:
        connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        found: dict[str, float] = json.loads(response.read())
    finally:
        connection.close()
    return found


def _result(chosen: Namespace, values: Values) -> dict[str, Any]:
    """Returns the results with the keys of vLLM 0.33.0 (vllm/benchmarks/serve.py)."""
    result = {name: values[value] for name, value in values.recipe["results"].items()}
    statistics = ["mean", "median", *(f"p{each}" for each in chosen.metric_percentiles.split(","))]
    times = {metric: values[metric] * 1000 for metric in values.recipe["metrics"]}
    own = dict(pair.split("=", 1) for pair in chosen.metadata)
    return own | result | {f"{name}_{metric}_ms": ms for metric, ms in times.items() for name in statistics}
