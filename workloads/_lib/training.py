"""What trainings share: how much arithmetic a token takes, how much the hardware could do, and what memory it has."""

from __future__ import annotations

from components.context import GpuPool

GB = 1e9
"""Bytes: memory of GPUs is sold in these."""
USABLE = 0.9
"""Share of a GPU's memory that tensors can have; CUDA, NCCL and fragmentation take the rest."""


def usable_bytes(memory_gb: int) -> float:
    """What of a GPU's memory (GB, as sold) tensors can have."""
    return USABLE * memory_gb * GB


def flops_per_token(*, weights: int, layers: int, width: int, sequence: int) -> float:
    """Floating-point operations of one token's forward and backward pass through a decoder.

    `weights` are those that a token is multiplied with: the layers' and the output's, not the look-up of its embedding.
    Each costs one multiplication and one addition forward and twice that backward; attention over `sequence` tokens
    adds 12 * layers * width * sequence. Nothing that is computed again counts, nor does the mask's saving, so that the
    share of the peak is the MFU of Chowdhery et al. (PaLM, 2022, appendix B).
    """
    return 6 * weights + 12 * layers * width * sequence


def throughput_variables(pool: GpuPool, nodes: int, flops: float) -> dict[str, str]:
    """Environment of throughput.sh: GPUs, `flops` per token, and all GPUs' dense bf16 (or fp16) peak, in FLOP/s."""
    gpus = pool.sku.gpus * nodes
    return {
        "GPUS": str(gpus),
        "FLOPS_PER_TOKEN": f"{flops:.6g}",
        "PEAK_FLOPS": f"{pool.sku.gpu_bf16_tflops * 1e12 * gpus:.6g}",
    }
