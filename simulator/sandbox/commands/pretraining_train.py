"""`pretraining.train` of docker/pytorch-pretraining under the simulated torchrun: no model, and the loss is invented.

Command line, memory, checkpoints' folders and all that it says are the image's own modules, which need no torch.
"""

from __future__ import annotations

import importlib
import math
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from simulator.sandbox.library import pretraining_speed, training
from simulator.sandbox.library.torch_agents import STARTED, ProgramError, Team
from simulator.sandbox.library.torch_ranks import Communicator, initialise

LONGEST_S = 0.2
"""Of a step: nobody waits weeks."""
_told: list[int] = []
"""SIGTERM, as often as it came to this process."""


def main(_: list[str]) -> int:
    """Started without torchrun."""
    print("simulator: pretraining.train is played under torchrun only", file=sys.stderr)
    return 1


def prepare(arguments: list[str]) -> Namespace:
    """Each node by itself: the command line, and the data. Raises ProgramError."""
    signal.signal(signal.SIGTERM, lambda number, _: _told.append(number))
    sys.path.insert(0, str(Path.cwd()))
    options = _own("options")
    try:
        chosen: Namespace = options.parsed(arguments)
    except SystemExit as error:
        raise ProgramError(code=int(error.code or 0)) from error
    if chosen.data:
        files = _own("token_files")
        _refused(lambda: files.found(chosen.data, files.bytes_of_token(chosen.vocabulary), chosen.vocabulary))
    return chosen


def train(chosen: Namespace, team: Team) -> None:
    """All ranks, on the first node. Raises ProgramError, and AgentError when a node goes away."""
    ranks, folders, report = initialise(team), _own("folders"), _own("report")
    shape = _own("shape").Shape(chosen.layers, chosen.width, chosen.heads, chosen.vocabulary, chosen.sequence)
    plan = _refused(
        lambda: _own("memory").plan(
            shape, chosen.batch, ranks.ranks, ranks.gpu_bytes, chosen.micro_batch, fp8=chosen.fp8
        )
    )
    folder = chosen.output / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    folders.clear(folder)
    found = _refused(lambda: folders.newest(folder, asdict(shape)))
    begun = found[1] if found else 0
    print(report.begun(shape, ranks.ranks, plan, chosen.batch // ranks.ranks // plan.micro, begun))
    speed = pretraining_speed.of(ranks.collective.sku, shape.parameters, plan.way, fp8=chosen.fp8)
    print(f"simulator: {speed.source}")
    seconds, seen = 0.0, 0
    for step in range(begun + 1, chosen.steps + 1):
        pods = team.check()
        took = _seconds(chosen, shape, ranks, speed.mfu)
        time.sleep(min(took, LONGEST_S))
        seconds, seen = seconds + took, seen + 1
        if step % chosen.log_steps == 0 or step == chosen.steps:
            _log(chosen, shape, ranks, step, seconds / seen)
            seconds, seen = 0.0, 0
        stop = bool(_told) or any((pod.said("torchrun") or {}).get("told") for pod in pods)
        if stop or step % chosen.checkpoint_steps == 0 or step == chosen.steps:
            _save(chosen, shape, ranks, step)
        if stop:
            print(report.stopped(step))
            raise ProgramError(code=_own("options").EVICTED)


def follow(team: Team, _: Mapping[str, Any]) -> None:
    """The ranks of another node: they pass on that they were told to stop, and stop with all others."""
    if _told and not team.told("told", default=False):
        team.tell(STARTED, told=True)


def _seconds(chosen: Namespace, shape: Any, ranks: Communicator, mfu: float) -> float:
    """Of a step. Gradients, 4 bytes for each parameter, are reduced and weights, 2 bytes, gathered once."""
    tokens = chosen.batch * chosen.sequence
    update = training.Update(flops=shape.flops_per_token * tokens, exchanged=(4 + 2) * shape.parameters)
    return ranks.seconds(update, mfu)


def _log(chosen: Namespace, shape: Any, ranks: Communicator, step: int, seconds: float) -> None:
    """The loss is a function of the step, so that it is the same in a training that was broken off."""
    report, least = _own("report"), 0.0 if chosen.data else math.log(4)
    loss = least + (math.log(chosen.vocabulary) - least) * (1 + step) ** -0.5
    peak = chosen.peak_tflops * 1e12 * ranks.ranks
    found = report.metrics(
        shape, chosen.batch, peak, step=step, loss=loss, gradient=1 + (1 + step) ** -0.5, seconds=seconds
    )
    print(report.line(found))
    report.keep(chosen.output, found)


def _save(chosen: Namespace, shape: Any, ranks: Communicator, step: int) -> None:
    """A checkpoint with a word in place of each share."""
    folders = _own("folders")
    part = folders.begin(chosen.output / "checkpoints", step)
    for rank in range(ranks.ranks):
        (part / f"masters-{rank}.simulated").write_text(f"simulated: the share of rank {rank} of step {step}\n")
        folders.written(part, rank).touch()
    folders.finish(part, ranks.ranks, {**asdict(shape), "steps": step, "size": shape.parameters}, 2)


def _refused(call: Any) -> Any:
    """What a function of the image returns. Raises ProgramError, having told why, for what it refuses."""
    try:
        return call()
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        raise ProgramError(str(error), _own("options").UNFIT) from error


def _own(name: str) -> Any:
    """A module of the image's, which is found where torchrun was started."""
    return importlib.import_module(f"pretraining.{name}")
