"""Pre-trains a model with `torchrun ... -m pretraining.train`, continues from checkpoints, and stops at SIGTERM.

Sequences are read by number, so the result does not depend on the number of GPUs.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, distributed, nn

from pretraining import memory, options, report
from pretraining.checkpoint import Checkpoints
from pretraining.data import Source, Synthetic, TokenFiles
from pretraining.fp8 import Linear8
from pretraining.memory import Way
from pretraining.model import Transformer, attention
from pretraining.optimizer import MasterAdamW, world
from pretraining.shape import Shape
from pretraining.sharded import ShardedAdamW

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


@dataclass(frozen=True)
class Schedule:
    """The learning rate. It rises to `peak` in `warmup` steps, then falls along a cosine to peak / 10 at `steps`."""

    peak: float
    warmup: int
    steps: int

    def rate(self, step: int) -> float:
        """Returns the learning rate of a step; the first step is 1."""
        if step <= self.warmup:
            return self.peak * step / self.warmup
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        return self.peak * (0.1 + 0.45 * (1 + math.cos(math.pi * min(1.0, done))))


class Training:
    """One process of a training."""

    def __init__(self, chosen: argparse.Namespace, device: torch.device) -> None:
        """Plans and loads the training. Raises ValueError, which includes DataError and CheckpointError."""
        self.chosen, self.device = chosen, device
        self.shape = Shape(chosen.layers, chosen.width, chosen.heads, chosen.vocabulary, chosen.sequence)
        gpu = torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else None
        self.plan = memory.plan(self.shape, chosen.batch, world()[1], gpu, chosen.micro_batch, fp8=chosen.fp8)
        self.accumulate = chosen.batch // world()[1] // self.plan.micro
        self.source = self._source()
        self.model, self.optimizer = made(self.shape, device, self.plan.way, chosen.seed, fp8=chosen.fp8)
        self.schedule = Schedule(chosen.rate, chosen.warmup, chosen.steps)
        self.checkpoints = Checkpoints(chosen.output / "checkpoints", asdict(self.shape))
        self.board = _board(chosen.output / "tensorboard") if world()[0] == 0 else None
        self.stopped = False
        signal.signal(signal.SIGTERM, self._stop)

    def _source(self) -> Source:
        if self.chosen.data:
            return TokenFiles(self.chosen.data, self.chosen.vocabulary, self.chosen.seed)
        return Synthetic(self.chosen.vocabulary, self.chosen.seed, self.device)

    def _stop(self, *_: object) -> None:
        self.stopped = True

    def run(self) -> int:
        """Trains. Returns the exit code: 0 after all steps, or `EVICTED`."""
        begun = self.checkpoints.load(self.optimizer)
        self.print(report.begun(self.shape, world()[1], self.plan, self.accumulate, begun))
        since, seen = time.monotonic(), 0
        for step in range(begun + 1, self.chosen.steps + 1):
            loss, norm = self.step(step)
            seen += 1
            if step % self.chosen.log_steps == 0 or step == self.chosen.steps:
                value = loss.item()  # waits for the GPU
                self.log(step, value, norm.item(), (time.monotonic() - since) / seen)
                since, seen = time.monotonic(), 0
            stop = self._all_stop()
            if stop or step % self.chosen.checkpoint_steps == 0 or step == self.chosen.steps:
                self.checkpoints.save(self.optimizer)
            if stop:
                self.checkpoints.wait()
                self.print(report.stopped(step))
                if world()[1] > 1:
                    distributed.barrier()  # when a process ends, torchrun ends the node's others
                return options.EVICTED
        self.checkpoints.wait()
        return 0

    def step(self, step: int) -> tuple[Tensor, Tensor]:
        """Returns the batch's mean loss and its gradient's norm, still on the GPU."""
        losses = torch.zeros((), device=self.device)
        with attention():
            for tokens in self._batches(step):
                loss = self.model(tokens[:, :-1], tokens[:, 1:])
                loss.backward()
                losses += loss.detach()
        parts = self.accumulate * world()[1]
        norm = self.optimizer.step(self.schedule.rate(step), 1 / parts)
        if world()[1] > 1:
            distributed.all_reduce(losses)
        return losses / parts, norm

    def _batches(self, step: int) -> Iterator[Tensor]:
        rank, processes = world()
        first = (step - 1) * self.chosen.batch
        for part in range(self.accumulate):
            numbers = [first + (part * processes + rank) * self.plan.micro + index for index in range(self.plan.micro)]
            yield self.source.sequences(numbers, self.shape.sequence).to(self.device, non_blocking=True)

    def _all_stop(self) -> bool:
        """Returns whether any process must stop, so that all save the same step. Does not wait for the GPU."""
        if world()[1] == 1:
            return self.stopped
        any_stopped = torch.tensor(int(self.stopped))
        distributed.all_reduce(any_stopped, distributed.ReduceOp.MAX)
        return bool(any_stopped.item())

    def log(self, step: int, loss: float, norm: float, seconds: float) -> None:
        """Adds a line to the log and to metrics.jsonl, and a point to each curve in TensorBoard."""
        chosen, peak = self.chosen, self.chosen.peak_tflops * 1e12 * world()[1]
        found = report.metrics(self.shape, chosen.batch, peak, step=step, loss=loss, gradient=norm, seconds=seconds)
        self.print(report.line(found))
        if world()[0] == 0:
            report.keep(self.chosen.output, found)
        if self.board:
            for name in found.keys() - {"step"}:
                self.board.add_scalar(name, found[name], step)
            self.board.flush()

    def print(self, text: str) -> None:
        if world()[0] == 0:
            print(text, flush=True)


def made(
    shape: Shape, device: torch.device, way: Way, seed: int, *, fp8: bool
) -> tuple[nn.Module, MasterAdamW | ShardedAdamW]:
    """Returns a model and its optimizer. Initial weights are the same for each `way`. On a GPU, compiles the model."""
    with torch.device("meta") if way.sharded else device:
        model = Transformer(shape, Linear8 if fp8 else nn.Linear)
    for block in model.blocks:
        block.recomputes = way.recomputes
    torch.manual_seed(seed)  # earlier code may have used random numbers
    if way.sharded:
        return model, ShardedAdamW(model, device)
    model.initialize()
    model = model.to(torch.bfloat16)
    optimizer = MasterAdamW(model.parameters())
    return torch.compile(model, fullgraph=True) if device.type == "cuda" else model, optimizer


def _board(folder: Path) -> SummaryWriter | None:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 after the training, 2 for errors that no retry fixes, 143 after SIGTERM."""
    chosen = options.parsed(arguments)
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        distributed.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo")
    chosen.output.mkdir(parents=True, exist_ok=True)
    try:
        return Training(chosen, device).run()
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return options.UNFIT
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
