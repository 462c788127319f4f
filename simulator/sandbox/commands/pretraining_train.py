"""Simulates `pretraining.train` of docker/pytorch-pretraining under torchrun, with an invented loss.

Everything else comes from those modules of the image that do not need torch.
"""

from __future__ import annotations

import importlib
import math
import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from simulator.sandbox.library.recipe import Failed, Values
from simulator.sandbox.library.torch_team import Team, refuse_alone
from simulator.sandbox.library.training import Training


def main(_: list[str]) -> int:
    return refuse_alone("pretraining_train")


def prepare(arguments: list[str], _: Team) -> Namespace:
    """Reads the command line and checks each node's data. Raises Failed."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        chosen: Namespace = _own("options").parsed(arguments)
    except SystemExit as error:
        raise Failed(code=int(error.code or 0)) from error
    if chosen.data:
        files = _own("token_files")
        _checked(lambda: files.found(chosen.data, files.bytes_of_token(chosen.vocabulary), chosen.vocabulary))
    return chosen


def train(chosen: Namespace, team: Team) -> None:
    """Simulates all ranks on the first node. Raises Failed."""
    ranks, report = team.connect(), _own("report")
    gpus = len(ranks.devices)
    shape = _own("shape").Shape(chosen.layers, chosen.width, chosen.heads, chosen.vocabulary, chosen.sequence)
    asked = (chosen.batch, gpus, ranks.gpu_bytes, chosen.micro_batch)
    plan = _checked(lambda: _own("memory").plan(shape, *asked, fp8=chosen.fp8))
    folder = chosen.output / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    _own("folders").clear(folder)
    found = _checked(lambda: _own("folders").newest(folder, asdict(shape)))
    tokens = chosen.batch * chosen.sequence
    run = Run(Values(team.program, {}), chosen.steps, tokens, gpus, chosen=chosen, shape=shape, folder=folder)
    run.first = found[1] if found else 0
    run.log_steps, run.save_steps = chosen.log_steps, chosen.checkpoint_steps
    run.loss = (math.log(chosen.vocabulary), 0.0 if chosen.data else team.program["least_loss"])
    print(report.begun(shape, gpus, plan, chosen.batch // gpus // plan.micro, run.first))
    stopped = run.run(lambda: ranks.seconds(shape.flops_per_token * tokens), team.stopped)
    if stopped is not None:
        raise Failed(report.stopped(stopped), code=_own("options").EVICTED)


@dataclass
class Run(Training):
    """A training that logs and saves like the image's program."""

    chosen: Namespace = field(kw_only=True)
    shape: Any = field(kw_only=True)
    folder: Path = field(kw_only=True)

    def log(self, step: int, took: float) -> None:
        report, peak = _own("report"), self.chosen.peak_tflops * 1e12 * self.gpus
        numbers = {name: self.numbers(step, took)[name] for name in ("step", "loss", "gradient", "seconds")}
        found = report.metrics(self.shape, self.chosen.batch, peak, **numbers)
        print(report.line(found))
        report.keep(self.chosen.output, found)

    def save(self, step: int) -> None:
        folders, about = _own("folders"), {**asdict(self.shape), "steps": step, "size": self.shape.parameters}
        part = folders.begin(self.folder, step)
        for rank in range(self.gpus):
            (part / f"masters-{rank}.simulated").write_text(f"simulated: the share of rank {rank} of step {step}\n")
            folders.written(part, rank).touch()
        folders.finish(part, self.gpus, about, 2)


def _checked(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except ValueError as error:
        raise Failed(f"error: {error}", code=_own("options").UNFIT) from error


def _own(name: str) -> Any:
    return importlib.import_module(f"pretraining.{name}")
