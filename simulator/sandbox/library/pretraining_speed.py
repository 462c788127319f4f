"""How fast our own trainer is: measured on some GPUs and models (docs/performance.md), estimated for others."""

from __future__ import annotations

import math
from dataclasses import dataclass

from simulator.sandbox.library import view

_MEASURED, _NEAR = "H200", 0.05


@dataclass(frozen=True)
class Speed:
    """Share of the GPUs' peak in bf16, more than 1 perhaps in FP8, and where it is from."""

    mfu: float
    source: str


def of(sku: str, parameters: int, *, fp8: bool) -> Speed:
    """Of a model on GPUs of that VM size."""
    numbers = view.numbers()
    model, known = numbers["skus"][sku]["gpu_model"], numbers["pretraining_mfu"]
    rows = {float(billions): mfu for billions, mfu in known.get(model, known[_MEASURED]).items()}
    size = parameters / 1e9
    nearest = min(rows, key=lambda billions: abs(math.log(billions / size)))
    measured = model in known and abs(nearest / size - 1) < _NEAR and not fp8
    mfu = rows[nearest] * (numbers["pretraining_fp8"] if fp8 else 1)
    on = model if model in known else _MEASURED
    said = f"its speed is that of {nearest:g} billion parameters on an {on}, by docs/performance.md"
    return Speed(mfu, said if measured else f"{said}; est. for {size:.2f} on {model}{' in FP8' if fp8 else ''}")
