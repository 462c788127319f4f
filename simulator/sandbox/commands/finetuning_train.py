"""`finetuning.ray_train` of docker/ray-finetuning as Ray's job: no model, and the loss is invented.

Command line, checks, files of lines, packing, folders of checkpoints and all that it says are the image's own modules,
which need no torch. Whether the model can be had, and fits, is not played; four characters of a text count as a token.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import random
import sys
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.sandbox.library import finetuning_speed, ray_cluster, view
from simulator.sandbox.library.view import Pod

LONGEST_S = 0.2
"""Of a step: nobody waits hours."""
_POLL_S = 0.5
_START_TIMEOUT_S = 60
_CHARACTERS = 4
"""Of a token."""
_BEFORE, _LEAST = math.log(50272), math.log(4)
_KEEP = 2


class WorkerLost(Exception):
    """One of the workers does not answer: all begin anew."""


class StartTimedOut(Exception):
    """There were not enough GPUs for all workers in time."""


class HeadLost(Exception):
    """The node of this process is gone, and nobody hears it."""


@dataclass(frozen=True)
class _Plan:
    """What is learnt, known before it begins."""

    examples: int
    tokens: int
    steps: int


def main(arguments: list[str]) -> int:
    """The exit codes are those of the image."""
    sys.path.insert(0, str(Path.cwd()))
    options = _own("options")
    try:
        chosen = options.ray_parser().parse_args(arguments)
    except SystemExit as error:
        return int(error.code or 0)
    try:
        _fit(chosen, {WorkerLost: options.RETRIES, StartTimedOut: options.START_RETRIES})
    except (WorkerLost, StartTimedOut, HeadLost) as error:
        print(f"ray.train.TrainingFailedError: {error}", file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(options.UNFIT)
    return 0


def _fit(chosen: Namespace, limits: Mapping[type[Exception], int]) -> None:
    """Begins anew as often as Ray Train does (train/v2/_internal/execution/failure_handling/default.py)."""
    failures = dict.fromkeys(limits, 0)
    while True:
        try:
            _train(chosen, _group(chosen.workers))
        except (WorkerLost, StartTimedOut) as error:
            kind = type(error)
            failures[kind] += 1
            count = f"Error count: {failures[kind]} (max allowed: {limits[kind]})"
            print(f"(TrainController pid=300) [FailurePolicy] {count} Error: {error}")
            if failures[kind] > limits[kind]:
                raise
        else:
            return


def _group(wanted: int) -> list[Pod]:
    """Nodes with so many GPUs together, once they have joined. Raises HeadLost, StartTimedOut."""
    patience = float(os.environ.get("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", _START_TIMEOUT_S))
    deadline = time.monotonic() + patience
    while True:
        known = view.load()
        _check_head(known)
        found, gpus = [], 0
        for pod in ray_cluster.workers(known, known.me.key):
            if gpus < wanted:
                found.append(pod)
                gpus += len(pod.facts["gpus"])
        if gpus >= wanted:
            return found
        if time.monotonic() > deadline:
            what = f"The worker group startup timed out after {patience} seconds waiting for {wanted} workers"
            raise StartTimedOut(f"{what}; there are {gpus} GPUs")
        time.sleep(_POLL_S)


def _train(chosen: Namespace, group: Sequence[Pod]) -> None:
    """From the newest checkpoint on. Raises WorkerLost, HeadLost, and ValueError for what no other try would mend."""
    report, folders = _own("report"), _own("folders")
    plan = _planned(chosen)
    _check(group)
    chosen.output.mkdir(parents=True, exist_ok=True)
    begun = _restored(chosen, plan)
    _say(group, report.begun(plan.examples, plan.steps, begun, _BEFORE))
    sku = str(view.load().node_of(group[0])["sku"])
    speed = finetuning_speed.of(sku, chosen.model)
    print(f"simulator: {speed.source}")
    for step in range(begun + 1, plan.steps + 1):
        _check(group)
        time.sleep(min(plan.tokens / plan.steps / (speed.tokens_per_s * chosen.workers), LONGEST_S))
        if step % chosen.log_steps == 0 or step == plan.steps:
            found = {"step": step, "loss": _loss(step), "gradient": 1 / math.sqrt(1 + step)}
            found["tokens_per_s"] = speed.tokens_per_s * chosen.workers
            _say(group, report.line(found))
            report.keep(chosen.output, found)
        if step % chosen.checkpoint_steps == 0 or step == plan.steps:
            file = folders.unfinished(_folder(chosen), step)
            file.write_text(json.dumps({"about": _about(chosen, plan), "steps": step, "simulated": True}))
            folders.finish(file, _KEEP)
    _finish(chosen, group, plan)


def _finish(chosen: Namespace, group: Sequence[Pod], plan: _Plan) -> None:
    report, adapter = _own("report"), chosen.output / "adapter"
    adapter.mkdir(exist_ok=True)
    (adapter / "adapter_config.json").write_text(json.dumps({"r": chosen.rank, "simulated": True}))
    result = {"before": _BEFORE, "after": _loss(plan.steps), "steps": plan.steps}
    report.keep_result(chosen.output, result)
    _say(group, report.finished(result))


def _planned(chosen: Namespace) -> _Plan:
    """Raises ValueError."""
    options, lines = _own("options"), _own("lines")
    if chosen.data:
        lengths = lines.read(chosen.data, lambda prompt, text: 2 + (len(prompt or "") + len(text)) // _CHARACTERS)
    else:
        count, shortest, longest = options.SYNTHETIC
        chance = random.Random(chosen.seed)  # noqa: S311 - lengths, the same each time
        lengths = [chance.randint(shortest, longest) for _ in range(count)]
    options.check(chosen, chosen.workers, len(lengths))
    learnt = [min(length, chosen.longest) for length in lengths[chosen.evaluation :]]
    rows = chosen.epochs * len(lines.pack(learnt, range(len(learnt)), chosen.pack))
    return _Plan(len(learnt), chosen.epochs * sum(learnt), -(-rows // chosen.batch))


def _restored(chosen: Namespace, plan: _Plan) -> int:
    """The step of the newest checkpoint, 0 without any. Raises ValueError for another training's."""
    folders = _own("folders")
    _folder(chosen).mkdir(parents=True, exist_ok=True)
    complete = folders.complete(_folder(chosen))
    if not complete:
        return 0
    state = json.loads(complete[-1].read_text())
    folders.check(complete[-1], state["about"], _about(chosen, plan))
    return int(state["steps"])


def _folder(chosen: Namespace) -> Path:
    return Path(chosen.output / "checkpoints")


def _about(chosen: Namespace, plan: _Plan) -> dict[str, Any]:
    keys = ("model", "rank", "alpha", "pack", "batch", "epochs", "seed")
    return {**{key: getattr(chosen, key) for key in keys}, "examples": plan.examples, "tokens": plan.tokens}


def _check(group: Sequence[Pod]) -> None:
    """That all of its nodes are there, and their GPUs well."""
    known = view.load()
    _check_head(known)
    there = {pod.key for pod in ray_cluster.workers(known, known.me.key)}
    for pod in group:
        if pod.key not in there:
            raise WorkerLost(f"The node of worker {pod.hostname} has died: its raylet does not answer.")
        if not all(gpu["healthy"] for gpu in known.gpus_of(known.pods[pod.key])):
            raise WorkerLost(f"torch.AcceleratorError: CUDA error: unspecified launch failure on {pod.hostname}")


def _check_head(known: view.View) -> None:
    if not known.node_of(known.me)["ready"]:
        raise HeadLost("the node of the head is gone")


def _loss(step: int) -> float:
    """A function of the step, so that it is the same in a training that was broken off."""
    return _LEAST + (_BEFORE - _LEAST) / math.sqrt(1 + step)


def _say(group: Sequence[Pod], line: str) -> None:
    """What the first worker prints, as Ray shows it in the driver's log."""
    print(f"(RayTrainWorker pid=400, ip={group[0].ip}) {line}", flush=True)


def _own(name: str) -> Any:
    """A module of the image's."""
    return importlib.import_module(f"finetuning.{name}")
