"""How much GPU memory a training of OLMo takes at the least: what would not fit whatever its micro-batch is."""

from __future__ import annotations

from math import ceil

from config.skus import VmSku
from workloads._training import usable_bytes
from workloads.olmo.configs import TrainingConfig

STATE_BYTES = 16
"""Per parameter, all in float32: weight 4, gradient 4, AdamW's two moments 8.

All configs have `fsdp.precision: mixed`, which computes in bf16 but keeps the weights and reduces the gradients in
float32 (olmo/config.py, fsdp_precision; torch's MixedPrecision).
"""


def state_bytes_per_gpu(training: TrainingConfig, gpus: int) -> float:
    """STATE_BYTES * parameters / gpus: FSDP shards all of them over all GPUs.

    Activations and the layers that are gathered at a time come on top, more or less of them by `microBatch`. They are
    left out, so a training that this lets through may still be short of memory.
    """
    return STATE_BYTES * training.parameters / gpus


def least_nodes(training: TrainingConfig, sku: VmSku) -> int:
    """Fewest nodes of a VM size whose GPUs together hold the states."""
    return ceil(state_bytes_per_gpu(training, sku.gpus) / usable_bytes(sku.gpu_memory_gb))
