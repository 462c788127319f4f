"""How fast our own trainer is: measured on some GPUs and models (docs/performance.md), estimated for others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from simulator.sandbox.library import view

_MEASURED, _NEAR = "H200", 0.05


@dataclass(frozen=True)
class Speed:
    """Share of the GPUs' peak in bf16, more than 1 perhaps in FP8, and where it is from."""

    mfu: float
    source: str


def of(sku: str, parameters: int, way: Any, *, fp8: bool) -> Speed:
    """Of a model on GPUs of that VM size; `way` is the trainer's own word for how it lies on them (its `memory`)."""
    numbers = view.numbers()
    model, known = numbers["skus"][sku]["gpu_model"], numbers["pretraining_mfu"]
    rows = {float(billions): mfu for billions, mfu in known.get(model, known[_MEASURED]).items()}
    size = parameters / 1e9
    nearest = min(rows, key=lambda billions: abs(math.log(billions / size)))
    changed = {"pretraining_fp8": fp8, "pretraining_sharded": way.sharded, "pretraining_recomputed": way.recomputes}
    measured = model in known and abs(nearest / size - 1) < _NEAR and not any(changed.values())
    mfu = rows[nearest] * math.prod(numbers[name] for name, is_so in changed.items() if is_so)
    on = model if model in known else _MEASURED
    said = f"its speed is that of {nearest:g} billion parameters on an {on}, by docs/performance.md"
    return Speed(mfu, said if measured else f"{said}; est. for {size:.2f} on {model}, {way}{' in FP8' if fp8 else ''}")
