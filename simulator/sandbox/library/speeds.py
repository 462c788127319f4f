"""Speeds of our trainers: measured on some GPUs and models (docs/performance.md), estimated for others."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from simulator.sandbox.library import view

_MEASURED, _NEAR = "H200", 0.05
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([mb])(?![a-z])", re.IGNORECASE)
_UNITS = {"m": 1e6, "b": 1e9}
_DEFAULT = 1e9
"""The assumed parameters of a model without a size in its name."""


class Speed(NamedTuple):
    """The share of the GPUs' peak in bf16 (may exceed 1 in FP8), or tokens/s of each GPU; and its source."""

    value: float
    source: str


def of_pretraining(sku: str, parameters: int, way: Any, *, fp8: bool) -> Speed:
    """Returns a model's speed on a VM size. `way` is the trainer's distribution over GPUs (its `memory`)."""
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


def of_finetuning(sku: str, model: str) -> Speed:
    """Returns a model's speed, without padding, on GPUs of a VM size. The model's name must have its size."""
    numbers = view.numbers()
    measured, card = numbers["finetuning"], numbers["skus"][sku]["gpu_model"]
    rates = measured["tokens_per_s"]
    size = _parameters(model) or _DEFAULT
    nearest = min(rates, key=lambda name: abs(math.log(_parameters(name) / size)))
    said = f"its speed is that of {nearest} on an {measured['gpu_model']}, by docs/performance.md"
    if (model, card) == (nearest, measured["gpu_model"]):
        return Speed(rates[nearest], said)
    peak = numbers["skus"][sku]["tflops"] / measured["tflops"]
    rate = rates[nearest] * _parameters(nearest) / size * peak
    return Speed(rate, f"{said}; est. for {size / 1e9:.2f} billion parameters on {card}")


def _parameters(model: str) -> float:
    """Returns the last size in the name, or 0 without any: 8e9 for Llama-3.1-8B."""
    found = _SIZE.findall(model)
    return float(found[-1][0]) * _UNITS[found[-1][1].lower()] if found else 0
