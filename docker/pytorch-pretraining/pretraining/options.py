"""The command line of the trainer, and how it ends."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

UNFIT = 2
"""Exit code for what another try would not mend: options, data, or a checkpoint of another training."""
EVICTED = 143
"""Exit code after SIGTERM, as of a process that it ended: whoever counts failures sees none of the training's."""


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What to train, from the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m pretraining.train", description="Pre-trains a decoder-only transformer."
    )
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
