"""How much memory the trainer takes, as its own docker/pytorch-pretraining/pretraining/memory.py has it.

That file lies in the image, which is not the program's to import; a test holds the two to each other.
"""

from __future__ import annotations

from config.facts.skus import VmSku
from workloads.pytorch_pretraining.options import PretrainingOptions

USABLE = 0.92
"""Of a GPU's memory."""
PER_LAYER, PER_LAYER_FP8, PER_LAYER_RECOMPUTED, PER_SYMBOL = 28, 21, 2, 2.4
"""Bytes per token that are kept for backward: for a layer's width, and the vocabulary (docs/performance.md)."""
GATHERED_BLOCK, GATHERED_REST = 8, 2
"""Bytes per parameter of what FSDP gathers at once: of a block, and of what is in none."""


def parameters(options: PretrainingOptions) -> int:
    """Of the model: blocks without biases, one embedding that is also the output, positions."""
    return options.size.layers * _of_block(options) + _of_rest(options)


def _of_block(options: PretrainingOptions) -> int:
    return 12 * options.size.width**2 + 2 * options.size.width


def _of_rest(options: PretrainingOptions) -> int:
    return (options.vocabulary + options.sequence + 1) * options.size.width


def bytes_per_gpu(options: PretrainingOptions, gpus: int) -> float:
    """The least that each of `gpus` needs: one sequence at once, all sharded, and blocks computed again in backward."""
    every = parameters(options)
    states = every * (2 + 4 + 12 / gpus)
    if gpus > 1:
        gathered = GATHERED_BLOCK * _of_block(options) + GATHERED_REST * _of_rest(options)
        states = min(states, every * 16 / gpus + gathered + (every if options.fp8 else 0))
    per_layer = PER_LAYER_FP8 if options.fp8 else PER_LAYER
    kept = PER_LAYER_RECOMPUTED * options.size.layers + per_layer
    return states + options.sequence * (kept * options.size.width + PER_SYMBOL * options.vocabulary)


def fits(options: PretrainingOptions, sku: VmSku, gpus: int) -> bool:
    """Whether so many GPUs of that size hold it."""
    return bytes_per_gpu(options, gpus) <= usable_bytes(sku)


def usable_bytes(sku: VmSku) -> float:
    """Of each GPU, by the memory that it is sold with."""
    return USABLE * sku.gpu_memory_gb * 1e9
