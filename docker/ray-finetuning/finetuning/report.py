"""The loop's log lines, metrics.jsonl and result.json, without torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path


def begun(examples: int, steps: int, step: int, before: float) -> str:
    """Returns the first line. `step` is the step of the checkpoint from which the training continues, or 0."""
    return f"{examples} examples in {steps} steps, from step {step}; loss {before:.4f}"


def line(found: Mapping[str, float]) -> str:
    """Returns the log line for the steps since the last line."""
    return "step {step}: loss {loss:.4f}, gradient {gradient:.2f}, {tokens_per_s:,.0f} tokens/s".format_map(found)


def keep(output: Path, found: Mapping[str, float]) -> None:
    """Adds a line to metrics.jsonl."""
    with (output / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(found) + "\n")


def stopped(step: int) -> str:
    """Returns the last line of a training that was stopped."""
    return f"stopped: step {step} is saved"


def finished(result: Mapping[str, float]) -> str:
    """Returns the last line of a finished training."""
    return "evaluation loss: {before:.4f} before, {after:.4f} after".format_map(result)


def keep_result(output: Path, result: Mapping[str, float]) -> None:
    """Writes result.json."""
    (output / "result.json").write_text(json.dumps(result))
