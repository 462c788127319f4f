"""`vllm serve` in small: fetches a model, or finds it in the cache; takes the GPUs' memory; answers by HTTP.

Waiting is shorter than in life; what it says of time is as it would be there. Its words are those of vLLM 0.33.0, or
of transformers where that is named.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from simulator.sandbox.library import view
from simulator.sandbox.library.vllm_model import Model, Refused

FASTER, LONGEST_S = 20, 5.0
"""Than in life, and how long anything takes at most."""
LONGEST_ANSWER_S = 0.2
_GIB = 2**30
_LOOKS_S = 1.0


def main(arguments: list[str]) -> int:
    """Serves until it is told to stop."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # who asked may be gone
    chosen = _parsed(arguments)
    try:
        model = Model.placed(chosen.model, chosen.tensor_parallel_size)
        longest = chosen.max_model_len or int(model.facts["context"])
        model.check(longest)
        _fetch(model)
        _say(f"Starting to load model {model.name}...")
        room = _load(model, chosen.gpu_memory_utilization, longest)
    except Refused as refusal:
        print(refusal, file=sys.stderr)
        print("RuntimeError: Engine core initialization failed. See root cause above.", file=sys.stderr)
        return 1
    threading.Thread(target=_watch, args=(len(_held()),), daemon=True).start()
    server = Server((chosen.host, chosen.port), Handler)
    server.model, server.longest, server.room = model, longest, room
    _say(f"Starting vLLM server on http://{chosen.host}:{chosen.port}")
    server.serve_forever()
    return 0


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("vllm serve", epilog="the simulator's knows a part of the options")
    parser.add_argument("model")
    parser.add_argument("--host", default="0.0.0.0")  # noqa: S104 - as vLLM, in a network of the sandbox's own
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--tensor-parallel-size", "-tp", type=int, default=1)
    parser.add_argument("--max-model-len", type=int)
    parser.add_argument("--gpu-memory-utilization", type=float, default=0.92)
    parser.add_argument("--safetensors-load-strategy", choices=("lazy", "eager", "prefetch", "torchao"))
    return parser.parse_args(arguments)


def snapshot_of(name: str) -> Path:
    """Where huggingface_hub keeps a model (file_download.py, repo_folder_name)."""
    home = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface"))
    return home / "hub" / f"models--{name.replace('/', '--')}" / "snapshots" / "simulated"


def _fetch(model: Model) -> None:
    """From the hub, unless it is there. Raises Refused for a gated one without a token (transformers, utils/hub.py)."""
    there = snapshot_of(model.name)
    if there.exists():
        return
    if model.facts["gated"] and not os.environ.get("HF_TOKEN"):
        raise Refused(
            "OSError: You are trying to access a gated repo.\n"
            f"Make sure to have access to it at https://huggingface.co/{model.name}.\n"
            f"401 Client Error. Access to model {model.name} is restricted. You must have access to it and be "
            "authenticated to access it. Please log in."
        )
    seconds = model.facts["weight_bytes"] / (model.serving["download_gbs"] * 1e9)
    part = there.with_name(f"{os.getpid()}.incomplete")
    part.mkdir(parents=True)
    _pass(seconds)
    (part / "config.json").write_text(json.dumps({"simulated": model.facts}))
    part.rename(there)
    _say(f"Time spent downloading weights for {model.name}: {seconds:.6f} seconds")


def _load(model: Model, utilization: float, longest: int) -> float:
    """Bytes for keys and values on each GPU, once the weights are there. Raises Refused."""
    seconds = model.facts["weight_bytes"] / (model.serving["read_gbs"] * 1e9)
    room = model.cache_bytes(utilization, longest)
    _pass(seconds)
    _say(f"Model loading took {model.weight_bytes / _GIB:.2f} GiB memory and {seconds:.6f} seconds")
    _say(f"Available KV cache memory: {room / _GIB:.2f} GiB")
    tokens = int(room // model.kv_bytes)
    _say(
        f"GPU KV cache size: {tokens:,} tokens, Maximum concurrency for {longest:,} tokens per request: "
        f"{tokens / longest:.2f}x"
    )
    _pass(model.serving["compile_s"])
    _say(f"init engine (profile, create kv cache, warmup model) took {model.serving['compile_s']:.2f} s")
    return room


def _pass(seconds: float) -> None:
    time.sleep(min(seconds / FASTER, LONGEST_S))


def _say(text: str) -> None:
    print(f"INFO {time.strftime('%m-%d %H:%M:%S')} {text}")


def _watch(gpus: int) -> None:
    """The engine dies with a GPU."""
    with contextlib.suppress(TimeoutError):  # the pod is going
        while sum(gpu["healthy"] for gpu in _held()) == gpus:
            time.sleep(_LOOKS_S)
        print("vllm.v1.engine.exceptions.EngineDeadError: a GPU is lost", file=sys.stderr)
        os._exit(1)


def _held() -> list[view.Json]:
    """The pod's GPUs."""
    known = view.load()
    return known.gpus_of(known.me)


class Server(ThreadingHTTPServer):
    """What all requests share."""

    daemon_threads = True
    model: Model
    longest: int
    room: float

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._lock, self._at_once = threading.Lock(), 0

    def handle_error(self, *_: Any) -> None:
        """Who asked is gone."""

    def answer(self, prompt: int, tokens: int) -> dict[str, float]:
        """Seconds to the first token of an answer, and between two, with all that is asked meanwhile."""
        with self._lock:
            self._at_once += 1
            at_once = self._at_once
        try:
            most = max(1, int(self.room // ((prompt + tokens) * self.model.kv_bytes)))
            together = min(at_once, most)
            step = self.model.step_s(together, prompt + tokens / 2)
            first = self.model.prompt_s(prompt) * together + step
            waits = max(0, at_once - most) / most * (first + (tokens - 1) * step)
            time.sleep(min((waits + first + (tokens - 1) * step), LONGEST_ANSWER_S))
        finally:
            with self._lock:
                self._at_once -= 1
        return {"first": waits + first, "between": step}


class Handler(BaseHTTPRequestHandler):
    """OpenAI's API, as far as it is asked here."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        if self.path == "/health":
            self._send(200, b"")
        elif self.path == "/v1/models":
            name = self.server.model.name
            entry = {"id": name, "object": "model", "root": name, "max_model_len": self.server.longest}
            self._send(200, json.dumps({"object": "list", "data": [entry]}).encode())
        else:
            self._send(404, b'{"detail":"Not Found"}')

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt, tokens = len(asked["prompt"]), asked["max_tokens"]
        if asked["model"] != self.server.model.name:
            self._send(404, json.dumps({"error": f"The model `{asked['model']}` does not exist."}).encode())
        elif prompt + tokens > self.server.longest:
            what = f"This model's maximum context length is {self.server.longest} tokens"
            self._send(400, json.dumps({"error": f"{what}, and {prompt + tokens} are asked for."}).encode())
        else:
            took = self.server.answer(prompt, tokens)
            usage = {"prompt_tokens": prompt, "completion_tokens": tokens}
            self._send(200, json.dumps({"usage": usage, "simulated_seconds": took}).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing of each request."""
