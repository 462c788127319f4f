"""How much memory the trainer takes, as its own docker/pytorch-pretraining/pretraining/memory.py has it.

That file lies in the image, which is not the program's to import; a test holds the two to each other.
"""

from __future__ import annotations

from config.facts.skus import VmSku
from workloads.pytorch_pretraining.options import PretrainingOptions

USABLE = 0.92
"""Of a GPU's memory."""
PER_LAYER, PER_LAYER_FP8, PER_SYMBOL = 28, 21, 2.4
"""Bytes per token that are kept for backward: for a layer's width, and the vocabulary (docs/performance.md)."""
WRITTEN = 12
"""Bytes of a checkpoint for each parameter: its fp32 master, and two moments."""


def parameters(options: PretrainingOptions) -> int:
    """Of the model: blocks without biases, one embedding that is also the output, positions."""
    layers, width = options.size.layers, options.size.width
    return layers * (12 * width**2 + 2 * width) + (options.vocabulary + options.sequence + 1) * width


def bytes_per_gpu(options: PretrainingOptions, gpus: int) -> float:
    """The least that each of `gpus` needs, which is with one sequence at once."""
    states = parameters(options) * (2 + 4 + 12 / gpus)
    per_layer = PER_LAYER_FP8 if options.fp8 else PER_LAYER
    per_token = per_layer * options.size.layers * options.size.width + PER_SYMBOL * options.vocabulary
    return states + options.sequence * per_token


def fits(options: PretrainingOptions, sku: VmSku, gpus: int) -> bool:
    """Whether so many GPUs of that size hold it."""
    return bytes_per_gpu(options, gpus) <= usable_bytes(sku)


def usable_bytes(sku: VmSku) -> float:
    """Of each GPU, by the memory that it is sold with."""
    return USABLE * sku.gpu_memory_gb * 1e9
