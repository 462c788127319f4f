"""How long a simulated training takes, at a stated utilisation and what a slower network adds; memory that is short."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from simulator.sandbox.library import nccl_net, view
from simulator.world import network
from simulator.world.network import INFINIBAND, SOCKET, Collective

RESERVED = 0.1  # of a GPU's memory, for CUDA, NCCL and fragmentation


def out_of_memory(needed: float, gpu_bytes: float) -> str:
    """What torch says where a GPU lacks memory; empty where it has enough."""
    short = needed - gpu_bytes * (1 - RESERVED)
    if short <= 0:
        return ""
    return (
        f"CUDA out of memory. Tried to allocate {max(short / 2**30, 0.02):.2f} GiB. GPU 0 has a total capacity of "
        f"{gpu_bytes / 2**30:.2f} GiB of which 0 bytes is free. (simulator: it needs {needed / 1e9:.0f} GB)"
    )


@dataclass(frozen=True)
class Update:
    """One update of the weights, over all GPUs."""

    flops: float
    exchanged: float = 0
    """Bytes of weights and gradients that each node exchanges with the others."""
    misplaced: float = 0
    """Bytes that cross nodes because a model-parallel group does, which a well-placed training would not send."""


def seconds(update: Update, collective: Collective, numbers: Mapping[str, Any], mfu: float | None = None) -> float:
    """Duration of an update. The utilisation is that of healthy trainings, so their exchange is part of it already."""
    sku = numbers["skus"][collective.sku]
    arithmetic = update.flops / (collective.ranks * sku["tflops"] * 1e12 * (mfu or numbers["training_mfu"]))
    if collective.nodes == 1:
        return float(arithmetic)
    now = network.peak(collective, numbers) * 1e9
    full = ((1.0,) * sku["hcas"],) * collective.nodes
    healthy = network.peak(replace(collective, links=full, transport=INFINIBAND, aligned=True), numbers) * 1e9
    added = update.exchanged * (1 / now - 1 / healthy) + update.misplaced / now
    return float(arithmetic + max(0.0, added))


def at_present(collective: Collective, known: view.View, by_pod: Mapping[str, Mapping[str, str]]) -> Collective:
    """The same communicator with the links as they are now; `by_pod` is each pod's NCCL environment."""
    networks = [nccl_net.choose(known, known.pods[key], variables) for key, variables in by_pod.items()]
    transport = SOCKET if any(found.transport == SOCKET for found in networks) else INFINIBAND
    return replace(collective, transport=transport, links=tuple(found.speeds for found in networks))
