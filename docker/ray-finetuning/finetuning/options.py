"""The loop's command line, and checks of its values, without torch."""

from __future__ import annotations

import argparse
from pathlib import Path

EVICTED = 143
"""The exit code after SIGTERM, equal to a killed process's. It does not count as a failure of the training."""
UNFIT = 2
"""The exit code for errors that no retry fixes, in options, data or checkpoints."""
RETRIES = 3
"""How often Ray restarts all workers after a worker died."""
START_RETRIES = 3
"""How often Ray waits for GPUs again, a minute each time. Then the job fails, and KubeRay tries another cluster.

KubeRay does not replace a pod on a dead node, because it counts terminating pods (1.6.2,
controllers/ray/raycluster_controller.go, reconcilePods).
"""
SYNTHETIC = (2048, 32, 512)
"""The number of synthetic examples, and their minimum and maximum length in tokens."""


def parser(name: str = "finetuning.train") -> argparse.ArgumentParser:
    """Returns the parser of the options."""
    about = "Fine-tunes a model with LoRA, continues from checkpoints, and stops at SIGTERM."
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=about)
    parser.add_argument("--model", required=True, help="folder, or name on the Hugging Face Hub")
    parser.add_argument("--data", type=Path, help="file of JSON lines, or folder with *.jsonl; by default synthetic")
    parser.add_argument("--output", type=Path, required=True, help="folder for checkpoints, metrics and adapter")
    parser.add_argument("--rank", type=int, default=16, help="rank of LoRA's matrices")
    parser.add_argument("--alpha", type=int, default=32, help="scale of LoRA's matrices")
    parser.add_argument("--targets", nargs="+", help="layers with LoRA, such as q_proj v_proj; by default peft's")
    parser.add_argument("--longest", type=int, default=2048, help="maximum tokens of an example; the rest is cut off")
    parser.add_argument("--pack", type=int, default=8192, help="tokens that a GPU computes together")
    parser.add_argument("--batch", type=int, default=8, help="packs in a step, over all GPUs")
    parser.add_argument("--epochs", type=int, default=1, help="passes over the examples")
    parser.add_argument("--rate", type=float, default=2e-4, help="highest learning rate")
    parser.add_argument("--warmup", type=int, default=10, help="steps until the highest learning rate")
    parser.add_argument("--evaluation", type=int, default=64, help="examples for evaluation, not for training")
    parser.add_argument("--checkpoint-steps", type=int, default=50, help="steps between checkpoints")
    parser.add_argument("--log-steps", type=int, default=10, help="steps between log lines")
    parser.add_argument("--seed", type=int, default=1)
    return parser


def ray_parser() -> argparse.ArgumentParser:
    """Returns the parser of the options on Ray."""
    made = parser("finetuning.ray_train")
    made.add_argument("--workers", type=int, required=True, help="processes, each with a GPU if there are any")
    return made


def check(chosen: argparse.Namespace, processes: int, examples: int) -> None:
    """Checks the options for a number of processes and examples. Raises ValueError with all errors."""
    wrong = []
    if chosen.batch % processes:
        near = max(1, round(chosen.batch / processes)) * processes
        wrong.append(f"{processes} GPUs cannot share {chosen.batch} packs equally: use --batch {near}")
    if chosen.longest > chosen.pack:
        wrong.append(f"--longest is {chosen.longest}, more than a pack of {chosen.pack} tokens")
    if not 0 <= chosen.evaluation < examples:
        allowed = f"0 to {examples - 1}" if examples > 1 else "0"
        wrong.append(f"--evaluation is {chosen.evaluation} of {examples} examples; allowed: {allowed}")
    if wrong:
        raise ValueError("; ".join(wrong))
