"""How much memory a training takes of one GPU, and how it is spread over several so that it fits."""

from __future__ import annotations

from dataclasses import dataclass

from pretraining.shape import Shape

USABLE = 0.92
"""Of a GPU's memory: the rest is the driver's, NCCL's, and lost between blocks."""
_PER_LAYER, _PER_LAYER_FP8, _PER_LAYER_RECOMPUTED, _PER_SYMBOL = 28, 21, 2, 2.4
"""Bytes per token that are kept for backward: for each of a layer's `width`, and of the vocabulary. Of measurements."""
_GATHERED_BLOCK, _GATHERED_REST = 8, 2
"""Bytes per parameter of what FSDP gathers at once: weights and gradients of a block and the next, and of all else."""
_MOST_AT_ONCE = 32
"""Sequences: more bring nothing."""


@dataclass(frozen=True)
class Way:
    """How a model lies on GPUs."""

    sharded: bool = False
    """Each has its share of all (FSDP2); else it has all weights, and its share of the optimizer (ZeRO's stage 1)."""
    recomputes: bool = False
    """Backward computes again what blocks did, in place of keeping it."""

    def __str__(self) -> str:
        shared = "FSDP" if self.sharded else "ZeRO-1"
        return f"{shared}, activation checkpointing" if self.recomputes else shared


WAYS = (Way(), Way(sharded=True), Way(recomputes=True), Way(sharded=True, recomputes=True))
"""The fastest first."""


@dataclass(frozen=True)
class Plan:
    """How a training runs."""

    way: Way
    micro: int
    """Sequences that each process takes at once."""


def ways(processes: int) -> list[Way]:
    """Those that there are for so many, the fastest first."""
    return [each for each in WAYS if processes > 1 or not each.sharded]


def needed(shape: Shape, micro_batch: int, processes: int, way: Way = WAYS[0], *, fp8: bool = False) -> float:
    """Bytes: weights, gradients, masters and moments, as far as they are this process's; and what backward needs."""
    per_layer = _PER_LAYER_FP8 if fp8 else _PER_LAYER
    kept = _PER_LAYER_RECOMPUTED * shape.layers + per_layer if way.recomputes else per_layer * shape.layers
    per_token = kept * shape.width + _PER_SYMBOL * shape.vocabulary
    if way.sharded:
        rest = shape.parameters - shape.layers * shape.block_parameters
        states = shape.parameters * 16 / processes + _GATHERED_BLOCK * shape.block_parameters + _GATHERED_REST * rest
        states += shape.parameters if fp8 else 0  # backward has weights in eight bits
    else:
        states = shape.parameters * (2 + 4 + 12 / processes)
    return states + micro_batch * shape.sequence * per_token


def plan(shape: Shape, batch: int, processes: int, gpu: float | None, chosen: int = 0, *, fp8: bool = False) -> Plan:
    """The fastest way that fits, with the most sequences at once that divide a process's part of the batch.

    `gpu` is a GPU's memory, bytes; without any it is the first way. As many at once as are `chosen` are tried even
    where they should not fit. Raises ValueError, with what would do.
    """
    if shape.width % shape.heads:
        raise ValueError(f"width {shape.width} does not divide among {shape.heads} heads")
    if batch % processes:
        near = max(processes, round(batch / processes) * processes)
        raise ValueError(f"a batch of {batch} sequences does not divide among {processes} GPUs: take {near}")
    part = batch // processes
    if chosen and part % chosen:
        fitting = ", ".join(str(each) for each in range(1, part + 1) if part % each == 0)
        raise ValueError(f"micro-batches of {chosen} do not make up {part} sequences of a GPU: take {fitting}")
    if gpu is None:
        return Plan(WAYS[0], chosen or 1)
    room, most = gpu * USABLE, min(part, _MOST_AT_ONCE)
    sizes = [chosen] if chosen else [each for each in range(most, 0, -1) if part % each == 0]
    for way in ways(processes):
        for micro in sizes:
            if needed(shape, micro, processes, way, fp8=fp8) <= room:
                return Plan(way, micro)
    if chosen:
        return Plan(ways(processes)[-1], chosen)
    least = min(needed(shape, 1, processes, way, fp8=fp8) for way in ways(processes)) / 2**30
    raise ValueError(
        f"it needs {least:.0f} GiB of each GPU, which has {room / 2**30:.0f}: take more GPUs, or fewer layers"
    )
