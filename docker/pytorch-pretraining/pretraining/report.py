"""Log lines of a training, and metrics.jsonl."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pretraining.memory import Plan
from pretraining.shape import Shape

Metrics = Mapping[str, float]


def begun(shape: Shape, processes: int, plan: Plan, accumulate: int, step: int) -> str:
    """Returns the first line: model, plan, micro-batches, and the last finished step."""
    return (
        f"{shape.parameters / 1e9:.2f} billion parameters, {plan.way}; {processes} x {plan.micro} sequences, "
        f"{accumulate} times; from step {step}"
    )


def metrics(
    shape: Shape, batch: int, peak: float, *, step: int, loss: float, gradient: float, seconds: float
) -> Metrics:
    """Returns the metrics of a step. `peak` is the peak FLOP/s of all GPUs. MFU is the reached share of `peak`."""
    rate = batch * shape.sequence / seconds
    mfu = rate * shape.flops_per_token / peak
    return {"step": step, "loss": loss, "gradient": gradient, "tokens_per_s": rate, "mfu": mfu}


def line(found: Metrics) -> str:
    """Returns the log line of a step."""
    return (
        f"step {found['step']}: loss {found['loss']:.4f}, gradient {found['gradient']:.2f}, "
        f"{found['tokens_per_s']:,.0f} tokens/s, MFU {found['mfu']:.3f}"
    )


def keep(output: Path, found: Metrics) -> None:
    """Adds a line to metrics.jsonl."""
    with (output / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(found) + "\n")


def stopped(step: int) -> str:
    """Returns the last line of a training that was stopped."""
    return f"stopped: step {step} is saved"
