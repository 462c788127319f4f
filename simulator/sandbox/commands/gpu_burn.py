"""`gpu_burn` of wilicc/gpu-burn, on this pod's GPUs.

It takes as long as the real program, and prints the same lines (gpu_burn-drv.cpp at 0831a45).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from simulator.sandbox.library import view
from simulator.sandbox.library.view import View

NO_DEVICE = 19
_FLAGS_WITH_VALUE = ("-m", "-stts", "-i", "-c")
_OPERATIONS = 2 * 8192**3
"""Operations per matrix product (OPS_PER_MUL)."""
_STEP_S = 0.5


def main(arguments: list[str]) -> int:
    """Returns 0, even if a GPU is lost and reported as FAULTY. Without a GPU, returns gpu-burn's exit code."""
    seconds = _seconds(arguments)
    known = view.load()
    gpus = known.gpus_of(known.me)
    for gpu in gpus:
        print(f"GPU {gpu['index']}: {gpu['product']} (UUID: {gpu['uuid']})")
    if not gpus:
        print("No CUDA devices", file=sys.stderr)
        return NO_DEVICE
    print(f"Burning for {seconds} seconds.")
    begun = time.monotonic()
    while (elapsed := time.monotonic() - begun) < seconds:
        time.sleep(min(_STEP_S, seconds - elapsed))
    rates = [_gflops(gpu, known) for gpu in known.gpus_of(known.me)]
    done = " - ".join(f"{int(rate * 1e9 * seconds / _OPERATIONS)} ({rate:.0f} Gflop/s) " for rate in rates)
    print(f"\r100.0%  proc'd: {done}  errors: 0   temps: --   power: -- ")
    print("\nKilling processes with SIGTERM (soft kill)\ndone\n")
    print(f"Tested {len(gpus)} GPUs:")
    for number, gpu in enumerate(view.load().gpus_of(known.me)):
        print(f"\tGPU {number}: {'OK' if gpu['healthy'] else 'FAULTY'}")
    return 0


def _seconds(arguments: list[str]) -> int:
    plain = [
        word
        for before, word in zip(["", *arguments], arguments, strict=False)
        if not word.startswith("-") and before not in _FLAGS_WITH_VALUE
    ]
    return int(plain[0]) if plain else 10


def _gflops(gpu: Mapping[str, Any], known: View) -> float:
    """Pods that use the same GPU share the GPU's rate."""
    numbers = view.numbers()
    peaks: dict[str, float] = numbers["fp32_tflops"]
    reached: float = numbers["gpu_burn_fraction"]
    peak = next((peak for model, peak in peaks.items() if model in gpu["product"]), 0.0)
    sharing = [
        pod
        for pod in known.pods.values()
        if pod.node == known.me.node and pod.running and gpu["index"] in pod.facts["gpus"]
    ]
    return peak * 1000 * reached / max(1, len(sharing))
