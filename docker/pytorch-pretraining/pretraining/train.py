"""`torchrun ... -m pretraining.train`: pre-trains a model, resumes where it was, and stops within its grace.

All of a batch's sequences are read by number, so that what is learnt does not depend on how many GPUs learn it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, distributed, nn

from pretraining import memory
from pretraining.checkpoint import CheckpointError, Checkpoints
from pretraining.data import DataError, Source, Synthetic, TokenFiles
from pretraining.fp8 import Linear8
from pretraining.model import Shape, Transformer, attention
from pretraining.optimizer import MasterAdamW, world

EVICTED = 143
"""Exit code after SIGTERM, as of a process that it ended: whoever counts failures sees none of the training's."""


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


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What to train, from the command line."""
    parser = argparse.ArgumentParser(prog="python -m pretraining.train", description=__doc__)
    for name in ("layers", "width", "heads"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--vocabulary", type=int, default=51200)
    parser.add_argument("--sequence", type=int, default=2048, help="tokens")
    parser.add_argument("--batch", type=int, required=True, help="sequences of a step, of all GPUs together")
    parser.add_argument(
        "--micro-batch", type=int, default=0, help="sequences that a GPU takes at once; the most that fit"
    )
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--rate", type=float, default=2e-4, help="the highest learning rate")
    parser.add_argument("--warmup", type=int, default=50, help="steps")
    parser.add_argument("--fp8", action="store_true")
    parser.add_argument("--data", type=Path, help="folder of *.bin; without it, a source of known entropy")
    parser.add_argument("--output", type=Path, required=True, help="checkpoints and metrics")
    parser.add_argument("--checkpoint-steps", type=int, default=500)
    parser.add_argument("--log-steps", type=int, default=10)
    parser.add_argument("--peak-tflops", type=float, default=989.0, help="of one GPU in bf16, for MFU")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(arguments)


class Training:
    """One training in one process of several."""

    def __init__(self, chosen: argparse.Namespace, device: torch.device) -> None:
        """Raises ValueError (also DataError and CheckpointError) with what is to be told."""
        self.chosen, self.device = chosen, device
        self.shape = Shape(chosen.layers, chosen.width, chosen.heads, chosen.vocabulary, chosen.sequence)
        self.micro = memory.micro_batch(
            self.shape, chosen.batch, world()[1], device, chosen.micro_batch, fp8=chosen.fp8
        )
        self.accumulate = chosen.batch // world()[1] // self.micro
        self.source = self._source()
        torch.manual_seed(chosen.seed)
        with device:
            model = Transformer(self.shape, Linear8 if chosen.fp8 else nn.Linear)
            model.initialize()
        model = model.to(torch.bfloat16)
        self.optimizer = MasterAdamW(model.parameters())
        self.model = torch.compile(model, fullgraph=True) if device.type == "cuda" else model
        self.schedule = Schedule(chosen.rate, chosen.warmup, chosen.steps)
        self.checkpoints = Checkpoints(chosen.output / "checkpoints", asdict(self.shape))
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
        self.tell(
            f"{self.shape.parameters / 1e9:.2f} billion parameters; {world()[1]} x {self.micro} sequences, "
            f"{self.accumulate} times; from step {begun}"
        )
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
                self.tell(f"told to stop: step {step} is saved")
                return EVICTED
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
            numbers = [first + (part * processes + rank) * self.micro + index for index in range(self.micro)]
            yield self.source.sequences(numbers, self.shape.sequence).to(self.device, non_blocking=True)

    def _all_stop(self) -> bool:
        """Whether any process was told to: all save the same step. Asked on the CPU, so that no GPU is waited for."""
        if world()[1] == 1:
            return self.stopped
        told = torch.tensor(int(self.stopped))
        distributed.all_reduce(told, distributed.ReduceOp.MAX)
        return bool(told.item())

    def log(self, step: int, loss: float, norm: float, seconds: float) -> None:
        """A line for people, and one of metrics.jsonl."""
        rate = self.chosen.batch * self.shape.sequence / seconds
        mfu = rate * self.shape.flops_per_token / (self.chosen.peak_tflops * 1e12 * world()[1])
        self.tell(f"step {step}: loss {loss:.4f}, gradient {norm:.2f}, {rate:,.0f} tokens/s, MFU {mfu:.3f}")
        if world()[0] == 0:
            found = {"step": step, "loss": loss, "gradient": norm, "tokens_per_s": rate, "mfu": mfu}
            with (self.chosen.output / "metrics.jsonl").open("a") as file:
                file.write(json.dumps(found) + "\n")

    def tell(self, text: str) -> None:
        if world()[0] == 0:
            print(text, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where it is trained, 2 for what is wrong with its options, 143 where it was told to stop."""
    chosen = options(arguments)
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        distributed.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo")
    chosen.output.mkdir(parents=True, exist_ok=True)
    try:
        return Training(chosen, device).run()
    except (ValueError, DataError, CheckpointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
