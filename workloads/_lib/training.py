"""Trainings' operations per token, peak performance and usable memory."""

from __future__ import annotations

from components.context import GpuPool

GB = 1e9
USABLE = 0.9
"""The share of GPU memory for tensors. CUDA, NCCL and fragmentation need the rest."""


def usable_bytes(memory_gb: int) -> float:
    return USABLE * memory_gb * GB


def flops_per_token(*, weights: int, layers: int, width: int, sequence: int) -> float:
    """Returns the floating-point operations of one token's forward and backward pass through a decoder.

    `weights` is the number of weights that multiply a token, in layers and output, without the embedding lookup. Each
    weight costs a multiplication and an addition forward, and twice as much backward. Attention over `sequence` tokens
    adds 12 * layers * width * sequence. Recomputation does not add operations, and the causal mask does not remove any,
    as in the MFU of Chowdhery et al. (PaLM, 2022, appendix B).
    """
    return 6 * weights + 12 * layers * width * sequence


def throughput_variables(pool: GpuPool, nodes: int, flops: float) -> dict[str, str]:
    gpus = pool.sku.gpus * nodes
    return {
        "GPUS": str(gpus),
        "FLOPS_PER_TOKEN": f"{flops:.6g}",
        "PEAK_FLOPS": f"{pool.sku.gpu_bf16_tflops * 1e12 * gpus:.6g}",
    }
