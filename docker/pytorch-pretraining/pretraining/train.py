"""`torchrun ... -m pretraining.train`: pre-trains a model, resumes where it was, and stops within its grace.

All of a batch's sequences are read by number, so that what is learnt does not depend on how many GPUs learn it.
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
    """Of the learning rate: up to `peak` in `warmup` steps, then along a cosine to a tenth of it at `steps`."""

    peak: float
    warmup: int
    steps: int

    def rate(self, step: int) -> float:
        """Of the step with this number, the first being 1."""
        if step <= self.warmup:
            return self.peak * step / self.warmup
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        return self.peak * (0.1 + 0.45 * (1 + math.cos(math.pi * min(1.0, done))))


class Training:
    """One training in one process of several."""

    def __init__(self, chosen: argparse.Namespace, device: torch.device) -> None:
        """Raises ValueError, of which DataError and CheckpointError are, with what is to be told."""
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
        """The exit code: 0 where all steps are done."""
        begun = self.checkpoints.load(self.optimizer)
        self.tell(report.begun(self.shape, world()[1], self.plan, self.accumulate, begun))
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
                self.tell(report.stopped(step))
                if world()[1] > 1:
                    distributed.barrier()  # torchrun would end the others of its node with the first that has ended
                return options.EVICTED
        self.checkpoints.wait()
        return 0

    def step(self, step: int) -> tuple[Tensor, Tensor]:
        """Mean loss of the batch, and the norm of its gradient, still on the GPU."""
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
        """This process's micro-batches: sequences are dealt out by number."""
        rank, processes = world()
        first = (step - 1) * self.chosen.batch
        for part in range(self.accumulate):
            numbers = [first + (part * processes + rank) * self.plan.micro + index for index in range(self.plan.micro)]
            yield self.source.sequences(numbers, self.shape.sequence).to(self.device, non_blocking=True)

    def _all_stop(self) -> bool:
        """Whether any process was told to: all save the same step. Asked on the CPU, so that no GPU is waited for."""
        if world()[1] == 1:
            return self.stopped
        told = torch.tensor(int(self.stopped))
        distributed.all_reduce(told, distributed.ReduceOp.MAX)
        return bool(told.item())

    def log(self, step: int, loss: float, norm: float, seconds: float) -> None:
        """A line for people, one of metrics.jsonl, and curves for TensorBoard."""
        chosen, peak = self.chosen, self.chosen.peak_tflops * 1e12 * world()[1]
        found = report.metrics(self.shape, chosen.batch, peak, step=step, loss=loss, gradient=norm, seconds=seconds)
        self.tell(report.line(found))
        if world()[0] == 0:
            report.keep(self.chosen.output, found)
        if self.board:
            for name in found.keys() - {"step"}:
                self.board.add_scalar(name, found[name], step)
            self.board.flush()

    def tell(self, text: str) -> None:
        if world()[0] == 0:
            print(text, flush=True)


def made(
    shape: Shape, device: torch.device, way: Way, seed: int, *, fp8: bool
) -> tuple[nn.Module, MasterAdamW | ShardedAdamW]:
    """A model with random weights, the same in each way, compiled where there is a GPU; and what updates it."""
    with torch.device("meta") if way.sharded else device:
        model = Transformer(shape, Linear8 if fp8 else nn.Linear)
    for block in model.blocks:
        block.recomputes = way.recomputes
    torch.manual_seed(seed)  # what there is by now may have taken numbers
    if way.sharded:
        return model, ShardedAdamW(model, device)
    model.initialize()
    model = model.to(torch.bfloat16)
    optimizer = MasterAdamW(model.parameters())
    return torch.compile(model, fullgraph=True) if device.type == "cuda" else model, optimizer


def _board(folder: Path) -> SummaryWriter | None:
    """TensorBoard's writer, where there is TensorBoard."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where it is trained, 2 for what is wrong with its options, 143 where it was told to stop."""
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
