"""The command line and the exit codes of the trainer."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

UNFIT = 2
"""Exit code for errors that no retry fixes: options, data, or a checkpoint of another training."""
EVICTED = 143
"""The exit code after SIGTERM, equal to a killed process's. It does not count as a failure of the training."""


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Returns the options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m pretraining.train", description="Pre-trains a decoder-only transformer."
    )
    for name in ("layers", "width", "heads"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--vocabulary", type=int, default=51200, help="number of tokens in the vocabulary")
    parser.add_argument("--sequence", type=int, default=2048, help="tokens in a sequence")
    parser.add_argument("--batch", type=int, required=True, help="sequences in a step, over all GPUs")
    parser.add_argument(
        "--micro-batch", type=int, default=0, help="sequences that a GPU computes together; by default as many as fit"
    )
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--rate", type=float, default=2e-4, help="highest learning rate")
    parser.add_argument("--warmup", type=int, default=50, help="steps until the highest learning rate")
    parser.add_argument("--fp8", action="store_true", help="multiply matrices in FP8")
    parser.add_argument("--data", type=Path, help="folder with *.bin; by default synthetic data with known entropy")
    parser.add_argument("--output", type=Path, required=True, help="folder for checkpoints and metrics")
    parser.add_argument("--checkpoint-steps", type=int, default=500, help="steps between checkpoints")
    parser.add_argument("--log-steps", type=int, default=10, help="steps between log lines")
    parser.add_argument("--peak-tflops", type=float, default=989.0, help="peak of one GPU in bf16, for the MFU")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(arguments)
