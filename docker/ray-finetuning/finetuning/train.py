"""Fine-tunes a model with LoRA, continues from checkpoints, and stops at SIGTERM: `python -m finetuning.train`.

The examples of a step do not depend on the number of GPUs.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor, distributed, nn

from finetuning import data, lines
from finetuning import report as reporting
from finetuning.checkpoint import Checkpoints
from finetuning.data import Example
from finetuning.lines import DataError
from finetuning.model import Learner, adapted, load
from finetuning.options import EVICTED, SYNTHETIC, UNFIT, check, parser

transformers.utils.logging.disable_progress_bar()


def world() -> tuple[int, int]:
    """Returns rank and number of processes."""
    if not distributed.is_initialized():
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


def log(text: str) -> None:
    if world()[0] == 0:
        print(text, flush=True)


def examples_of(chosen: argparse.Namespace, vocabulary: int) -> list[Example]:
    """Returns all examples. Raises DataError."""
    if not chosen.data:
        count, *lengths = SYNTHETIC
        shortest, longest = (min(each, chosen.longest) for each in lengths)
        return data.synthetic(vocabulary, chosen.seed, count, (shortest, longest))
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(chosen.model)
    except (OSError, ValueError) as error:
        what = f"the tokenizer of {chosen.model} cannot be loaded"
        raise DataError(f"{what}: {str(error).splitlines()[0]}") from error
    found, cut = data.read(chosen.data, tokenizer, vocabulary, chosen.longest)
    if cut:
        log(f"{cut} examples have more than {chosen.longest} tokens; the rest is cut off")
    return found


class Training:
    """One process of a training."""

    def __init__(self, chosen: argparse.Namespace, base: nn.Module, examples: list[Example]) -> None:
        """Plans and loads the training. Raises ValueError, which includes DataError, ModelError and CheckpointError."""
        check(chosen, world()[1], len(examples))
        self.chosen = chosen
        order = np.random.default_rng(chosen.seed).permutation(len(examples))
        self.held, self.examples = np.split(np.array(examples, object)[order], [chosen.evaluation])
        self.rows = self._packed(self.examples, range(chosen.epochs))
        self.steps = -(-len(self.rows) // chosen.batch)
        torch.manual_seed(chosen.seed)
        self.model = adapted(base, chosen.rank, chosen.alpha, chosen.targets)
        self.learner = Learner(self.model, chosen.pack, chosen.longest)
        self.learner.check(max(self.examples, key=lambda each: len(each.tokens)))
        if self.learner.device.type == "cuda":
            self.learner.compile()
        self.weights = {name: each for name, each in self.model.named_parameters() if each.requires_grad}
        for each in self.weights.values():
            each.grad = torch.zeros_like(each)
        self.optimizer = torch.optim.AdamW(self.weights.values(), weight_decay=0.0, fused=True)
        self.checkpoints = Checkpoints(chosen.output / "checkpoints", self._about(base.config))
        self.begun, self.before = self.checkpoints.load(self.weights, self.optimizer)
        self.stopped = False

    def _about(self, config: Any) -> dict[str, Any]:
        model = {key: getattr(config, key) for key in ("model_type", "num_hidden_layers", "hidden_size", "vocab_size")}
        learnt = {"examples": len(self.examples), "tokens": int(sum(len(each.tokens) for each in self.examples))}
        plan = {key: getattr(self.chosen, key) for key in ("rank", "alpha", "pack", "batch", "epochs", "seed")}
        return {**model, "targets": sorted(self.model.peft_config["default"].target_modules), **learnt, **plan}

    def _packed(self, examples: Sequence[Example], rounds: Sequence[int]) -> list[list[Example]]:
        lengths = [len(each.tokens) for each in examples]
        found = []
        for number in rounds:
            order = np.random.default_rng([self.chosen.seed, number]).permutation(len(lengths))
            found += [[examples[each] for each in row] for row in lines.pack(lengths, order, self.chosen.pack)]
        return found

    def run(self, report: Callable[[Mapping[str, Any]], None] = lambda _: None) -> int:
        """Trains. Returns the exit code: 0 after all steps, or EVICTED. Each process calls `report` with metrics."""
        before = self.evaluate() if self.before is None else self.before
        log(reporting.begun(len(self.examples), self.steps, self.begun, before))
        since, seen = time.monotonic(), 0
        for step in range(self.begun + 1, self.steps + 1):
            loss, norm, tokens = self.step(step)
            seen += tokens
            if step % self.chosen.log_steps == 0 or step == self.steps:
                found = {"step": step, "loss": loss.item(), "gradient": norm.item()}  # waits for the GPU
                found["tokens_per_s"] = seen / (time.monotonic() - since)
                since, seen = time.monotonic(), 0
                self.log(found, report)
            stop = self._any_stops()
            due = stop or step % self.chosen.checkpoint_steps == 0 or step == self.steps
            if due and world()[0] == 0:
                self.checkpoints.save(step, self.weights, self.optimizer, before)
            if stop:
                log(reporting.stopped(step))
                return EVICTED
        self.finish({"before": before, "after": self.evaluate(), "steps": self.steps}, report)
        return 0

    def step(self, step: int) -> tuple[Tensor, Tensor, int]:
        """Returns the batch's mean loss and the gradient's norm, which stay on the GPU, and the number of tokens."""
        batch = self.rows[(step - 1) * self.chosen.batch : step * self.chosen.batch]
        share = 1 / sum(each.learnt for row in batch for each in row)
        rank, processes = world()
        loss = torch.zeros((), device=self.learner.device)
        for row in batch[rank::processes]:
            loss += self.learner.loss(row, share, learn=True)
        gradients = [each.grad for each in self.weights.values()]
        if processes > 1:
            together = nn.utils.parameters_to_vector([loss, *gradients])
            distributed.all_reduce(together)
            nn.utils.vector_to_parameters(together, [loss, *gradients])
        norm = nn.utils.clip_grad_norm_(self.weights.values(), 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(step)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)
        return loss, norm, sum(len(each.tokens) for row in batch for each in row)

    def rate(self, step: int) -> float:
        """Returns the learning rate of a step (first: 1). It rises in the warm-up, then falls along a cosine to 0."""
        if step <= self.chosen.warmup:
            return self.chosen.rate * step / self.chosen.warmup
        done = (step - self.chosen.warmup) / max(1, self.steps + 1 - self.chosen.warmup)
        return self.chosen.rate * 0.5 * (1 + math.cos(math.pi * done))

    def evaluate(self) -> float:
        """Returns the mean loss per token of the evaluation examples. Without examples, returns nan."""
        share = 1 / max(1, sum(each.learnt for each in self.held))
        rows = self._packed(self.held, [0])[world()[0] :: world()[1]]
        loss = torch.zeros((), device=self.learner.device)
        for row in rows:
            loss += self.learner.loss(row, share, learn=False)
        if world()[1] > 1:
            distributed.all_reduce(loss)
        return loss.item() if len(self.held) else math.nan

    def _any_stops(self) -> bool:
        """Returns whether any process must stop, so that all save the same step."""
        if world()[1] == 1:
            return self.stopped
        any_stopped = torch.tensor(int(self.stopped), device=self.learner.device)
        distributed.all_reduce(any_stopped, distributed.ReduceOp.MAX)
        return bool(any_stopped.item())

    def log(self, found: Mapping[str, float], report: Callable[[Mapping[str, Any]], None]) -> None:
        """Adds a line to the log and to metrics.jsonl, and calls `report`."""
        log(reporting.line(found))
        if world()[0] == 0:
            reporting.keep(self.chosen.output, found)
        report(found)

    def finish(self, result: Mapping[str, float], report: Callable[[Mapping[str, Any]], None]) -> None:
        """Saves the adapter in peft's format, and result.json."""
        if world()[0] == 0:
            self.model.save_pretrained(self.chosen.output / "adapter", save_embedding_layers=False)
            reporting.keep_result(self.chosen.output, result)
        log(reporting.finished(result))
        report(result)


def prepared(chosen: argparse.Namespace, device: torch.device) -> Training:
    """Loads model and data. Raises ValueError."""
    if chosen.data:  # finds errors in seconds; loading the model takes minutes
        lines.read(chosen.data, lambda *_: None)
    chosen.output.mkdir(parents=True, exist_ok=True)
    base = load(chosen.model, device)
    return Training(chosen, base, examples_of(chosen, base.config.vocab_size))


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 after the training, 2 for errors that no retry fixes, 143 after SIGTERM."""
    chosen = parser().parse_args(arguments)
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if cuda else torch.device("cpu")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        distributed.init_process_group("nccl" if cuda else "gloo")
    try:
        training = prepared(chosen, device)
        signal.signal(signal.SIGTERM, lambda *_: setattr(training, "stopped", True))
        return training.run()
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return UNFIT
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
