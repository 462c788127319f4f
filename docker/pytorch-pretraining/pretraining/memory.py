"""How much memory a training takes of one GPU, and how many sequences it may take at once."""

from __future__ import annotations

from pretraining.shape import Shape

USABLE = 0.92
"""Of a GPU's memory: the rest is the driver's, NCCL's, and lost between blocks."""
_PER_LAYER, _PER_LAYER_FP8, _PER_SYMBOL = 28, 21, 2.4
"""Bytes per token that are kept for backward: for each of a layer's `width`, and of the vocabulary. Of measurements."""


def needed(shape: Shape, micro_batch: int, processes: int, *, fp8: bool = False) -> float:
    """Bytes: weights, summed gradients, this process's share of masters and moments, and what backward needs."""
    states = shape.parameters * (2 + 4 + 12 / processes)
    per_token = (_PER_LAYER_FP8 if fp8 else _PER_LAYER) * shape.layers * shape.width + _PER_SYMBOL * shape.vocabulary
    return states + micro_batch * shape.sequence * per_token


def micro_batch(
    shape: Shape, batch: int, processes: int, gpu: float | None, chosen: int = 0, *, fp8: bool = False
) -> int:
    """Sequences that a process takes at once: the most that divide its part of the batch and fit, 32 at most.

    `gpu` is a GPU's memory, bytes; without any it is one sequence. Raises ValueError, with what would do.
    """
    if shape.width % shape.heads:
        raise ValueError(f"width {shape.width} does not divide among {shape.heads} heads")
    if batch % processes:
        near = max(processes, round(batch / processes) * processes)
        raise ValueError(f"a batch of {batch} sequences does not divide among {processes} GPUs: take {near}")
    part = batch // processes
    if chosen:
        if part % chosen:
            fitting = ", ".join(str(each) for each in range(1, part + 1) if part % each == 0)
            raise ValueError(f"micro-batches of {chosen} do not make up {part} sequences of a GPU: take {fitting}")
        return chosen
    if gpu is None:
        return 1
    room = gpu * USABLE
    found = [
        each
        for each in range(1, min(part, 32) + 1)
        if part % each == 0 and needed(shape, each, processes, fp8=fp8) <= room
    ]
    if not found:
        least = needed(shape, 1, processes, fp8=fp8) / 2**30
        raise ValueError(
            f"it needs {least:.0f} GiB of each GPU, which has {room / 2**30:.0f}: take more GPUs, or fewer layers"
        )
    return max(found)
