"""`vllm serve`: downloads a model or finds it in the cache, reserves GPU memory, and answers by HTTP. No model runs.

Waits are shorter than on real Azure. The seconds that it prints and returns are not.
"""

from __future__ import annotations

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
from simulator.sandbox.library.recipe import Failed, Recipe

_BYTES, _GIB, _LOOKS_S = 2, 2**30, 1.0


class Model:
    """A language model on GPUs of this pod, with its memory use and the duration of answers."""

    def __init__(self, program: Recipe, name: str, gpus: int, longest: int | None, utilization: float) -> None:
        """Raises Failed if vLLM would fail: without the GPUs, the model, access to it or enough memory."""
        known, numbers = view.load(), view.numbers()
        self.program, self.name, self.gpus = program, name, gpus
        held = _healthy(known)
        facts = numbers["language_models"].get(name)
        self.values: dict[str, Any] = {"name": name, "gpus": gpus, "held": len(held), "known": facts is not None}
        self._check(program["fails"][:3])
        product = held[0]["product"]
        self.memory_tbs = next((tbs for called, tbs in numbers["memory_tbs"].items() if called in product), 1.0)
        self.facts, self.serving, self.sku = facts, numbers["serving"], numbers["skus"][known.node_of(known.me)["sku"]]
        self.longest = longest or int(facts["context"])
        memory, self.weight_bytes = self.sku["gpu_memory_gb"] * 1e9, float(facts["weight_bytes"]) / gpus
        self.kv_bytes = 2 * _BYTES * facts["layers"] * max(1, facts["kv_heads"] // gpus) * facts["head"]
        self.cache = utilization * memory - self.weight_bytes - self.serving["overhead_gb"] * 1e9
        there = {"cached": snapshot_of(name).exists(), "token": bool(os.environ.get("HF_TOKEN"))}
        sizes = {"memory": memory, "weights": self.weight_bytes, "cache": self.cache}
        sizes |= {"nothing": 0.0, "prompt": self.longest * self.kv_bytes}
        self.values |= {**facts, **there, **{what: size / _GIB for what, size in sizes.items()}}
        self.values |= {"longest": self.longest, "tokens": int(self.cache // self.kv_bytes)}
        self._check(program["fails"][3:])

    def say(self, line: str, seconds: float = 0, **values: Any) -> None:
        """Prints the recipe's lines of that name, after `seconds` of real Azure."""
        time.sleep(min(seconds / self.program["faster"], self.program["longest_s"]))
        at_once = self.values["tokens"] / self.longest
        for text in recipe.lines(self.program, line, {**self.values, "seconds": seconds, "at_once": at_once, **values}):
            print(text)

    def load(self) -> None:
        """Downloads the weights unless they are cached, and reads them."""
        there, size = snapshot_of(self.name), self.facts["weight_bytes"]
        if not there.exists():
            part = there.with_name(f"{os.getpid()}.incomplete")
            part.mkdir(parents=True)
            self.say("fetched", size / (self.serving["download_gbs"] * 1e9))
            (part / "config.json").write_text(json.dumps({"simulated": self.facts}))
            part.rename(there)
        self.say("loading")
        self.say("loaded", size / (self.serving["read_gbs"] * 1e9))
        self.say("compiled", self.serving["compile_s"])

    def seconds(self, at_once: int, prompt: int, tokens: int) -> dict[str, float]:
        """Returns the seconds to the first token of each of `at_once` answers, and between two tokens.

        A step reads the weights and all keys and values; a prompt takes its arithmetic. Prompts wait if the cache is
        full.
        """
        most = max(1, int(self.cache // ((prompt + tokens) * self.kv_bytes)))
        together = min(at_once, most)
        read = self.weight_bytes + together * (prompt + tokens / 2) * self.kv_bytes
        step = self.serving["step_s"] + read / (self.memory_tbs * 1e12 * self.serving["memory_fraction"])
        peak = self.sku["tflops"] * 1e12 * self.gpus * self.serving["arithmetic_fraction"]
        first = 2 * self.facts["parameters"] * prompt / peak * together + step
        waits = max(0, at_once - most) / most * (first + (tokens - 1) * step)
        return {"first": waits + first, "between": step}

    def answer(self, request: Request) -> Answer:
        """Serves the used part of OpenAI's API. A completion has one prompt, or several of equal length."""
        if request.method == "GET":
            entry = {"id": self.name, "object": "model", "root": self.name, "max_model_len": self.longest}
            answers = {"/health": None, "/v1/models": {"object": "list", "data": [entry]}}
            return (200, answers[request.path]) if request.path in answers else (404, {"detail": "Not Found"})
        asked = json.loads(request.body)
        many, tokens = isinstance(asked["prompt"][0], list), asked["max_tokens"]
        count, prompt = (len(asked["prompt"]), len(asked["prompt"][0])) if many else (1, len(asked["prompt"]))
        if asked["model"] != self.name:
            return 404, {"error": f"The model `{asked['model']}` does not exist."}
        if prompt + tokens > self.longest:
            context = f"This model's maximum context length is {self.longest} tokens"
            return 400, {"error": f"{context}, and {prompt + tokens} are asked for."}
        took = self.seconds(count, prompt, tokens)
        time.sleep(min(took["first"] + (tokens - 1) * took["between"], self.program["longest_answer_s"]))
        usage = {"prompt_tokens": count * prompt, "completion_tokens": count * tokens}
        return 200, {"usage": usage, "simulated_seconds": took}

    def _check(self, fails: list[Recipe]) -> None:
        if text := recipe.refusal(fails, self.values):
            raise Failed(text)


def main(chosen: Namespace, program: Recipe) -> int:
    """Serves until SIGTERM, or until a GPU fails."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # the client may have disconnected
    try:
        asked = (chosen.model, chosen.tensor_parallel_size, chosen.max_model_len, chosen.gpu_memory_utilization)
        model = Model(program, *asked)
    except Failed as error:
        print(error, file=sys.stderr)
        print("RuntimeError: Engine core initialization failed. See root cause above.", file=sys.stderr)
        return 1
    model.load()
    http_api.serve(chosen.host, chosen.port, model.answer)
    model.say("serving", host=chosen.host, port=chosen.port)
    while len(_healthy(view.load())) == model.values["held"]:
        time.sleep(_LOOKS_S)
    print("vllm.v1.engine.exceptions.EngineDeadError: a GPU is lost", file=sys.stderr, flush=True)
    os._exit(1)  # immediately: a normal exit may abort while threads answer requests


def _healthy(known: view.View) -> list[view.Json]:
    return [gpu for gpu in known.gpus_of(known.me) if gpu["healthy"]]


def snapshot_of(name: str) -> Path:
    """Returns huggingface_hub's folder for a model (file_download.py, repo_folder_name)."""
    home = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface"))
    return home / "hub" / f"models--{name.replace('/', '--')}" / "snapshots" / "simulated"
