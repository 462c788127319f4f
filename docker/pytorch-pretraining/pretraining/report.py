"""What a training says of itself: lines for people, and metrics.jsonl."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pretraining.memory import Plan
from pretraining.shape import Shape

Metrics = Mapping[str, float]


def begun(shape: Shape, processes: int, plan: Plan, accumulate: int, step: int) -> str:
    """The first line: what is trained, how, in which parts, and the last step that is done already."""
    return (
        f"{shape.parameters / 1e9:.2f} billion parameters, {plan.way}; {processes} x {plan.micro} sequences, "
        f"{accumulate} times; from step {step}"
    )


def metrics(
    shape: Shape, batch: int, peak: float, *, step: int, loss: float, gradient: float, seconds: float
) -> Metrics:
    """Of a step that took so long, on GPUs of `peak` FLOP/s together; MFU is the share of that."""
    rate = batch * shape.sequence / seconds
    mfu = rate * shape.flops_per_token / peak
    return {"step": step, "loss": loss, "gradient": gradient, "tokens_per_s": rate, "mfu": mfu}


def line(found: Metrics) -> str:
    """For people."""
    return (
        f"step {found['step']}: loss {found['loss']:.4f}, gradient {found['gradient']:.2f}, "
        f"{found['tokens_per_s']:,.0f} tokens/s, MFU {found['mfu']:.3f}"
    )


def keep(output: Path, found: Metrics) -> None:
    """Adds a line to metrics.jsonl."""
    with (output / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(found) + "\n")


def stopped(step: int) -> str:
    """The last line of a training that was told to stop."""
    return f"told to stop: step {step} is saved"
