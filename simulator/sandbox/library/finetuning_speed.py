"""How fast our own LoRA loop is: measured for one model on one GPU (docs/performance.md), estimated for others."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from simulator.sandbox.library import view

_SIZE = re.compile(r"(\d+(?:\.\d+)?)([mb])(?![a-z])", re.IGNORECASE)
_UNITS = {"m": 1e6, "b": 1e9}
_DEFAULT = 1e9
"""Parameters, of a model whose name tells none."""


@dataclass(frozen=True)
class Speed:
    """Of each GPU, without padding, and where it is from."""

    tokens_per_s: float
    source: str


def of(sku: str, model: str) -> Speed:
    """Of a model, whose size its name says, on GPUs of that VM size."""
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
    """The last size in the name, 0 without any: Llama-3.1-8B has 8e9."""
    found = _SIZE.findall(model)
    return float(found[-1][0]) * _UNITS[found[-1][1].lower()] if found else 0
