"""What the loop says, and what it leaves beside its checkpoints. No torch is needed here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path


def begun(examples: int, steps: int, step: int, before: float) -> str:
    """The first line; `step` is the last of the checkpoint that it goes on from."""
    return f"{examples} examples in {steps} steps, from step {step}; loss {before:.4f}"


def line(found: Mapping[str, float]) -> str:
    """Of some steps, for people."""
    return "step {step}: loss {loss:.4f}, gradient {gradient:.2f}, {tokens_per_s:,.0f} tokens/s".format_map(found)


def keep(output: Path, found: Mapping[str, float]) -> None:
    """The same as a line of metrics.jsonl."""
    with (output / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(found) + "\n")


def stopped(step: int) -> str:
    """The last line of one that was told to stop."""
    return f"told to stop: step {step} is saved"


def finished(result: Mapping[str, float]) -> str:
    """The last line of one that is through."""
    return "loss of what was not learnt: {before:.4f} before, {after:.4f} after".format_map(result)


def keep_result(output: Path, result: Mapping[str, float]) -> None:
    """As result.json."""
    (output / "result.json").write_text(json.dumps(result))
