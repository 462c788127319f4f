"""Estimates a training's GPU memory, and plans its distribution over several GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from pretraining.shape import Shape

USABLE = 0.92
"""Usable share of a GPU's memory. Driver, NCCL and fragmentation take the rest."""
_PER_LAYER, _PER_LAYER_FP8, _PER_LAYER_RECOMPUTED, _PER_SYMBOL = 28, 21, 2, 2.4
"""Bytes per token (measured) that are kept for backward: per layer and unit of `width`, and per vocabulary entry."""
_GATHERED_BLOCK, _GATHERED_REST = 8, 2
"""Bytes per parameter that FSDP gathers at once: weights and gradients of two blocks; the parts outside of blocks."""
_MOST_AT_ONCE = 32
"""The maximum number of sequences in a micro-batch. More are not faster."""


@dataclass(frozen=True)
class Way:
    """A way to distribute a model over GPUs."""

    sharded: bool = False
    """Whether weights and optimizer are sharded (FSDP2). If not, only the optimizer is sharded (ZeRO stage 1)."""
    recomputes: bool = False
    """Whether backward recomputes activations instead of keeping them."""

    def __str__(self) -> str:
        shared = "FSDP" if self.sharded else "ZeRO-1"
        return f"{shared}, activation checkpointing" if self.recomputes else shared


WAYS = (Way(), Way(sharded=True), Way(recomputes=True), Way(sharded=True, recomputes=True))
"""All ways. The fastest is first."""


@dataclass(frozen=True)
class Plan:
    """The plan of a training."""

    way: Way
    micro: int
    """Sequences in a micro-batch, which a process computes together."""


def ways(processes: int) -> list[Way]:
    """Returns the possible ways for this number of processes. The fastest is first."""
    return [each for each in WAYS if processes > 1 or not each.sharded]


def needed(shape: Shape, micro_batch: int, processes: int, way: Way = WAYS[0], *, fp8: bool = False) -> float:
    """Returns the bytes that a process needs: weights, gradients, masters, moments, and activations for backward."""
    per_layer = _PER_LAYER_FP8 if fp8 else _PER_LAYER
    kept = _PER_LAYER_RECOMPUTED * shape.layers + per_layer if way.recomputes else per_layer * shape.layers
    per_token = kept * shape.width + _PER_SYMBOL * shape.vocabulary
    if way.sharded:
        rest = shape.parameters - shape.layers * shape.block_parameters
        states = shape.parameters * 16 / processes + _GATHERED_BLOCK * shape.block_parameters + _GATHERED_REST * rest
        states += shape.parameters if fp8 else 0  # eight-bit copies of the weights for backward
    else:
        states = shape.parameters * (2 + 4 + 12 / processes)
    return states + micro_batch * shape.sequence * per_token


def plan(shape: Shape, batch: int, processes: int, gpu: float | None, chosen: int = 0, *, fp8: bool = False) -> Plan:
    """Returns the fastest way that fits, with the largest micro-batch that divides a process's part of the batch.

    `gpu` is a GPU's memory in bytes. Without a GPU, it is None, and the plan has the first way. If `chosen` is set, it
    is the micro-batch, even if it does not fit. Raises ValueError with the allowed values.
    """
    if shape.width % shape.heads:
        raise ValueError(f"{shape.heads} heads cannot share the width {shape.width} equally")
    if batch % processes:
        near = max(processes, round(batch / processes) * processes)
        raise ValueError(f"{processes} GPUs cannot share a batch of {batch} sequences equally: use {near}")
    part = batch // processes
    if chosen and part % chosen:
        fitting = ", ".join(str(each) for each in range(1, part + 1) if part % each == 0)
        raise ValueError(f"micro-batches of {chosen} do not divide the {part} sequences of a GPU: use {fitting}")
    if gpu is None:
        return Plan(WAYS[0], chosen or 1)
    usable, most = gpu * USABLE, min(part, _MOST_AT_ONCE)
    sizes = [chosen] if chosen else [each for each in range(most, 0, -1) if part % each == 0]
    for way in ways(processes):
        for micro in sizes:
            if needed(shape, micro, processes, way, fp8=fp8) <= usable:
                return Plan(way, micro)
    if chosen:
        return Plan(ways(processes)[-1], chosen)
    least = min(needed(shape, 1, processes, way, fp8=fp8) for way in ways(processes)) / 2**30
    have = f"of which {usable / 2**30:.0f} are usable"
    raise ValueError(f"the model needs {least:.0f} GiB of each GPU, {have}: use more GPUs, or fewer layers")
