"""The lines that metaseq logs: upstream's fields, in its order and rounding (json_progress_bar.py, trainer.py)."""

from __future__ import annotations

import json
import math
import time
from argparse import Namespace
from dataclasses import dataclass

from simulator.sandbox.library.metaseq_model import Model
from simulator.sandbox.library.nccl_log import Log

GIB = 2**30
TRAIN_INNER = "train_inner"
"""metaseq's name for what it logs of updates."""


@dataclass(frozen=True)
class Progress:
    """The state after an update; times in seconds of the simulated training, not of this process."""

    number: int
    seconds: float
    """Of the last update."""
    wall: float
    memory_bytes: float
    gpu_bytes: float


def info(log: Log, name: str, text: str) -> None:
    """A line of rank 0's logger."""
    log.line(f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} | INFO | {name} | {text}")


def beginning(log: Log, options: Namespace, model: Model) -> None:
    """What is logged before the first update."""
    trainer = "metaseq.cli.train"
    info(log, trainer, "task: DummyLMTask")
    info(log, trainer, "model: FullyShardedDataParallel")
    count = model.parameters // model.gpus
    info(log, trainer, f"num. model params: {count:,} (num. trained: {count:,})")
    info(log, trainer, f"training on {model.gpus} devices (GPUs/TPUs)")
    sizes = f"max tokens per GPU = {options.max_tokens} and batch size per GPU = {options.batch_size}"
    info(log, trainer, sizes)
    if options.aim_repo:
        info(log, "metaseq.logging.progress_bar.base_progress_bar", f"Storing logs at Aim repo: {options.aim_repo}")
    info(log, "metaseq.trainer", "begin training epoch 1")
    info(log, trainer, "Start iterating over samples")


def update(log: Log, options: Namespace, model: Model, progress: Progress) -> None:
    """The line of one update."""
    per_epoch = max(1, options.dataset_size // model.sequences)
    epochs, rest = divmod(progress.number - 1, per_epoch)
    place = {"epoch": epochs + 1, "update": round(epochs + (rest + 1) / per_epoch, 3)}
    numbers = {name: f"{value:g}" for name, value in statistics(options, model, progress).items()}
    info(log, TRAIN_INNER, json.dumps(place | numbers))


def end(log: Log, options: Namespace, progress: Progress) -> None:
    """What is logged after the last update."""
    reached = f"num_updates: {progress.number} >= max_update: {options.max_update}"
    info(log, "metaseq.cli.train", f"Stopping training due to {reached}")
    info(log, "metaseq.cli.train", f"done training in {progress.wall:.1f} seconds")


def learning_rate(options: Namespace, number: int) -> float:
    """polynomial_decay_schedule.py with the power 1: up while it warms up, then down in a straight line."""
    if number <= options.warmup_updates:
        return float(options.lr * number / options.warmup_updates)
    total = options.total_num_update or options.max_update
    if number >= total:
        return float(options.end_learning_rate)
    left = 1 - (number - options.warmup_updates) / (total - options.warmup_updates)
    return float((options.lr - options.end_learning_rate) * left + options.end_learning_rate)


def statistics(options: Namespace, model: Model, progress: Progress) -> dict[str, float]:
    """The numbers of an update, by name."""
    number, tokens = progress.number, model.sequences * model.sequence
    loss = math.log2(model.vocabulary) * math.exp(-number / 200)  # one sample for ever: it is learnt by heart
    first = number == 1  # meters of speed begin with the first update
    return {
        "loss": round(loss, 3),
        "ppl": round(2**loss, 2),
        "wps": 0 if first else round(tokens / progress.seconds, 1),
        "ups": 0 if first else round(1 / progress.seconds, 2),
        "wpb": tokens,
        "bsz": model.sequences,
        "num_updates": number,
        "lr": learning_rate(options, number),
        "gnorm": round(1 + loss, 3),
        "clip": 100,
        "loss_scale": options.fp16_init_scale,
        "scale_window": options.fp16_scale_window,
        "train_wall": round(progress.seconds),
        "cuda_gb_allocated": round(progress.memory_bytes / GIB, 1),
        "cuda_gb_reserved": round(progress.memory_bytes / GIB, 1),
        "cuda_gb_free": round((progress.gpu_bytes - progress.memory_bytes) / GIB, 1),
        "wall": round(progress.wall),
    }
