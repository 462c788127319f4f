"""`nvidia-smi`: this pod's GPUs as a table, list (-L) or CSV (--query-gpu and others), and their NVLinks."""

from __future__ import annotations

from simulator.sandbox.library import nvidia_smi, view


def main(arguments: list[str]) -> int:
    known = view.load()
    return nvidia_smi.answer(arguments, known.gpus_of(known.me))
