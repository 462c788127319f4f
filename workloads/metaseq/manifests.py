"""Builds the job and metaseq-train's command line from options and hardware."""

from __future__ import annotations

import functools
from pathlib import Path

import yaml

from workloads._lib.files import Files, shared
from workloads._lib.mpi import MpiJob, MpiRun, mpi_files
from workloads._lib.training import throughput_variables
from workloads.metaseq.options import NAME, MetaseqOptions
from workloads.metaseq.plan import Plan, plan
from workloads.metaseq.sizes import models

AIM = "/workspace/aim"
TENSORBOARD = "/workspace/tensorboard"
"""Prefix of a folder. Metaseq adds a number: the first run in a container writes to /workspace/tensorboard0000."""
_END_OF_LEARNING_RATE = 0.1  # of the learning rate, as in opt_baselines.py
_SCRIPTS = Path(__file__).parent / "scripts"
_ARGUMENTS = "arguments"  # one word of the command line per line, for train.sh


def training_arguments(plan: Plan, options: MetaseqOptions) -> list[str]:
    return [word for option, value in _options(plan, options).items() for word in (option, value) if word is not None]


def _options(plan: Plan, options: MetaseqOptions) -> dict[str, str | None]:
    size = plan.size
    updates = str(options.num_updates or plan.updates)
    warmup = plan.warmup_updates if options.warmup_updates is None else options.warmup_updates
    return {
        **_fixed(),
        "--tokens-per-sample": str(models().sequence),
        "--decoder-layers": str(size.layers),
        "--decoder-embed-dim": str(size.width),
        "--decoder-ffn-embed-dim": str(4 * size.width),
        "--decoder-attention-heads": str(size.heads),
        "--model-parallel-size": str(size.model_parallel),
        "--batch-size": str(plan.micro_batch),
        "--update-freq": str(plan.update_freq),
        "--lr": f"{size.learning_rate:g}",
        "--end-learning-rate": f"{size.learning_rate * _END_OF_LEARNING_RATE:g}",
        "--warmup-updates": str(warmup),
        "--total-num-update": updates,
        "--max-update": updates,
        **({"--aim-repo": AIM} if options.aim else {}),
        **({"--tensorboard-logdir": TENSORBOARD} if options.tensorboard else {}),
    }


@functools.cache
def _fixed() -> dict[str, str | None]:
    text = Path(__file__).with_name("arguments.yaml").read_text(encoding="utf-8")
    found: dict[str, str | None] = yaml.safe_load(text)
    return found


class Run(MpiRun[MetaseqOptions]):
    @property
    def plan(self) -> Plan:
        """The training's plan. Raises Unfit for settings that `problems` reports earlier."""
        return plan(models().sizes[self.options.model_size], self.pool.sku, self.nodes)


def files(run: Run) -> Files:
    words = training_arguments(run.plan, run.options)
    arguments = {_ARGUMENTS: "".join(f"{word}\n" for word in words)}
    return mpi_files(NAME, _SCRIPTS, run.pool, {**shared("mfu.sh"), **arguments})


def job(run: Run) -> MpiJob:
    """Returns the job. InfiniBand switches do not reduce: trainings failed with SHARP (NVIDIA/nccl#1709, #1219)."""
    return MpiJob(
        run=run,
        files=files(run),
        variables=throughput_variables(run.pool, run.nodes, run.plan.flops_per_token),
        sharp=False,
    )
