"""Simulates the Ray job `finetuning.ray_train` (docker/ray-finetuning), without a model and with an invented loss.

Everything else comes from those modules of the image that do not need torch. Assumes that the model is available and
fits into the GPUs' memory.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulator.sandbox.library import ray_cluster, view
from simulator.sandbox.library.recipe import Failed, Recipe, Values
from simulator.sandbox.library.training import Training
from simulator.sandbox.library.view import Pod

_POLL_S = 0.5


class Retried(Failed):
    """An error after which Ray Train restarts all workers. Each kind has its own limit."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text)
        self.kind = kind


def main(arguments: list[str]) -> int:
    sys.path.insert(0, str(Path.cwd()))
    options, recipe = _own("options"), view.program("finetuning_train")
    try:
        chosen = options.ray_parser().parse_args(arguments)
    except SystemExit as error:
        return int(error.code or 0)
    limits, failures = {"lost": options.RETRIES, "start": options.START_RETRIES}, Counter[str]()
    try:
        while True:  # until Ray Train's limit of restarts (failure_handling/default.py)
            try:
                _train(chosen, recipe, _workers(chosen.workers, recipe))
            except Retried as error:
                failures[error.kind] += 1
                count, limit = failures[error.kind], limits[error.kind]
                print(recipe["texts"]["policy"].format(count=count, limit=limit, error=error))
                if count > limit:
                    raise
            else:
                return 0
    except Failed as error:
        print(f"ray.train.TrainingFailedError: {error}", file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(options.UNFIT)


def _workers(wanted: int, recipe: Recipe) -> list[Pod]:
    timeout = float(os.environ.get("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S") or recipe["start_timeout_s"])
    deadline = time.monotonic() + timeout
    while True:
        found, gpus = list[Pod](), 0
        for pod in _joined(recipe):
            if gpus < wanted:
                found.append(pod)
                gpus += len(pod.facts["gpus"])
        if gpus >= wanted:
            return found
        if time.monotonic() > deadline:
            raise Retried(recipe["texts"]["start"].format(timeout=timeout, workers=wanted, gpus=gpus), "start")
        time.sleep(_POLL_S)


def _joined(recipe: Recipe) -> list[Pod]:
    known = view.load()
    if not known.node_of(known.me)["ready"]:
        raise Failed(recipe["texts"]["head"])
    return ray_cluster.workers(known, known.me.key)


def _train(chosen: Namespace, recipe: Recipe, workers: Sequence[Pod]) -> None:
    report, known, folder = _own("report"), view.load(), chosen.output / "checkpoints"
    examples, tokens, steps = _planned(chosen, recipe)
    before = math.log(recipe["vocabulary"])
    about = {key: getattr(chosen, key) for key in ("model", "rank", "alpha", "pack", "batch", "epochs", "seed")}
    about |= {"examples": examples, "tokens": tokens}
    own: dict[str, Any] = {"chosen": chosen, "about": about, "ip": workers[0].ip, "folder": folder}
    run = Run(Values(recipe, {}), steps, tokens / steps, chosen.workers, **own)
    run.loss, run.log_steps, run.save_steps = (before, recipe["least_loss"]), chosen.log_steps, chosen.checkpoint_steps
    run.first = _restored(run)
    run.print(report.begun(examples, steps, run.first, before))
    speed = recipe["tokens_per_tflop"] * view.numbers()["skus"][known.node_of(workers[0])["sku"]]["tflops"]

    def seconds() -> float:
        _check(workers, recipe)
        return float(run.tokens / (speed * chosen.workers))

    run.run(seconds)
    adapter = chosen.output / "adapter"
    adapter.mkdir(exist_ok=True)
    (adapter / "adapter_config.json").write_text(json.dumps({"r": chosen.rank, "simulated": True}))
    result = {"before": before, "after": run.numbers(steps, 1)["loss"], "steps": steps}
    report.keep_result(chosen.output, result)
    run.print(report.finished(result))


@dataclass
class Run(Training):
    """A training that logs and saves like the image's program."""

    chosen: Namespace = field(kw_only=True)
    about: dict[str, Any] = field(kw_only=True)
    """Settings. A training can only continue from a checkpoint with equal settings."""
    ip: str = field(kw_only=True)
    folder: Path = field(kw_only=True)

    def print(self, line: str) -> None:
        """Prints a line of the first worker as the driver's log shows it."""
        print(self.values.recipe["texts"]["worker"].format(ip=self.ip, line=line), flush=True)

    def log(self, step: int, took: float) -> None:
        numbers = self.numbers(step, took)
        found = {name: numbers[name] for name in ("step", "loss", "gradient")} | {"tokens_per_s": self.tokens / took}
        self.print(_own("report").line(found))
        _own("report").keep(self.chosen.output, found)

    def save(self, step: int) -> None:
        folders = _own("folders")
        file = folders.unfinished(self.folder, step)
        file.write_text(json.dumps({"about": self.about, "steps": step, "simulated": True}))
        folders.finish(file, self.values.recipe["keep"])


def _planned(chosen: Namespace, recipe: Recipe) -> tuple[int, int, int]:
    options, lines = _own("options"), _own("lines")
    if chosen.data:
        size = recipe["characters_of_a_token"]
        lengths = lines.read(chosen.data, lambda prompt, text: 2 + (len(prompt or "") + len(text)) // size)
    else:
        count, shortest, longest = options.SYNTHETIC
        lengths = [(shortest + longest) // 2] * count
    options.check(chosen, chosen.workers, len(lengths))
    learnt = [min(length, chosen.longest) for length in lengths[chosen.evaluation :]]
    rows = chosen.epochs * len(lines.pack(learnt, range(len(learnt)), chosen.pack))
    return len(learnt), chosen.epochs * sum(learnt), -(-rows // chosen.batch)


def _restored(run: Run) -> int:
    """Returns the newest checkpoint's step or 0. Raises ValueError for a checkpoint of another training."""
    run.folder.mkdir(parents=True, exist_ok=True)
    complete = _own("folders").complete(run.folder)
    if not complete:
        return 0
    state = json.loads(complete[-1].read_text())
    _own("folders").check(complete[-1], state["about"], run.about)
    return int(state["steps"])


def _check(workers: Sequence[Pod], recipe: Recipe) -> None:
    joined, known = {pod.key for pod in _joined(recipe)}, view.load()
    for pod in workers:
        if pod.key not in joined:
            raise Retried(recipe["texts"]["lost"].format(pod=pod.hostname), "lost")
        if not all(gpu["healthy"] for gpu in known.gpus_of(pod)):
            raise Retried(recipe["texts"]["gpu"].format(pod=pod.hostname), "lost")


def _own(name: str) -> Any:
    return importlib.import_module(f"finetuning.{name}")
