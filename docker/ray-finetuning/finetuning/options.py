"""The command line of the loop, and what of it no data could mend. No torch is needed here."""

from __future__ import annotations

import argparse
from pathlib import Path

EVICTED = 143
"""Exit code after SIGTERM, as of a process that it ended: whoever counts failures sees none of the training's."""
UNFIT = 2
"""Exit code for options, data and checkpoints that another try would not mend."""
RETRIES = 3
"""How often Ray starts all workers again after one that died."""
START_RETRIES = 3
"""How often it waits for their GPUs again, a minute each time; then the job fails, for another cluster to be tried.

KubeRay makes no pod in place of one on a dead node (1.6.2, controllers/ray/raycluster_controller.go, reconcilePods: one
that is about to go counts).
"""
SYNTHETIC = (2048, 32, 512)
"""How many examples there are without data; the shortest and the longest."""


def parser(name: str = "finetuning.train") -> argparse.ArgumentParser:
    """Of what to train."""
    about = "fine-tunes a model by LoRA, resumes where it was, and stops within its grace"
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=about)
    parser.add_argument("--model", required=True, help="folder, or name on Hugging Face's hub")
    parser.add_argument("--data", type=Path, help="file of JSON lines, or folder of *.jsonl; else synthetic tokens")
    parser.add_argument("--output", type=Path, required=True, help="checkpoints, metrics and adapter")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--alpha", type=int, default=32)
    parser.add_argument("--targets", nargs="+", help="layers with LoRA, as q_proj v_proj; peft's usual ones")
    parser.add_argument("--longest", type=int, default=2048, help="tokens of an example: more are cut off")
    parser.add_argument("--pack", type=int, default=8192, help="tokens that a GPU takes at once")
    parser.add_argument("--batch", type=int, default=8, help="packs of a step, of all GPUs together")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rate", type=float, default=2e-4, help="the highest learning rate")
    parser.add_argument("--warmup", type=int, default=10, help="steps")
    parser.add_argument("--evaluation", type=int, default=64, help="examples that are not learnt")
    parser.add_argument("--checkpoint-steps", type=int, default=50)
    parser.add_argument("--log-steps", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    return parser


def ray_parser() -> argparse.ArgumentParser:
    """The same on Ray."""
    made = parser("finetuning.ray_train")
    made.add_argument("--workers", type=int, required=True, help="processes, each with a GPU where there are any")
    return made


def check(chosen: argparse.Namespace, processes: int, examples: int) -> None:
    """Raises ValueError with all that keeps so many processes from learning of so many examples."""
    wrong = []
    if chosen.batch % processes:
        near = max(1, round(chosen.batch / processes)) * processes
        wrong.append(f"{chosen.batch} packs do not divide among {processes} GPUs: take --batch {near}")
    if chosen.longest > chosen.pack:
        wrong.append(f"a pack of {chosen.pack} tokens has no room for an example of {chosen.longest}")
    if not 0 <= chosen.evaluation < examples:
        allowed = f"0 to {examples - 1}" if examples > 1 else "0"
        wrong.append(f"--evaluation is {chosen.evaluation}, and may be {allowed}: there are {examples} examples in all")
    if wrong:
        raise ValueError("; ".join(wrong))
