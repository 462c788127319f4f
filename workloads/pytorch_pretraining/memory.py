"""How much memory the trainer takes, how large checkpoints are, and how long it takes at worst to write them.

Memory is as its own docker/pytorch-pretraining/pretraining/memory.py has it. That file lies in the image, which is not
the program's to import; a test holds the two to each other.
"""

from __future__ import annotations

import math

from config.data.skus import VmSku
from config.schema.storage import SHARED_CLASS
from workloads._lib.team_training import claim_gib, usable_bytes
from workloads.pytorch_pretraining.options import PretrainingOptions

PER_LAYER, PER_LAYER_FP8, PER_LAYER_RECOMPUTED, PER_SYMBOL = 28, 21, 2, 2.4
"""Bytes per token that are kept for backward: for a layer's width, and the vocabulary (docs/performance.md)."""
GATHERED_BLOCK, GATHERED_REST = 8, 2
"""Bytes per parameter of what FSDP gathers at once: of a block, and of what is in none."""
WRITTEN = 12
"""Bytes of a checkpoint for each parameter: its fp32 master, and two moments."""
_KEPT = 3
"""Checkpoints that are there at once: two, and the one that is being written."""
_CONTAINER_BYTES_S = 0.5e9
"""A node's, to blob storage: est."""
_STANDARD_BYTES_S = 60 * 2**20
"""Of a standard share, all of its clients together: `azurefile-csi` makes one in an account without large file shares
(Azure, Scalability and performance targets for Azure Files; azurefile-csi-driver, docs/driver-parameters.md).
"""
_LAST_STEP_S = 120
"""For the step that runs, and what is written already."""


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


def checkpoint_bytes(options: PretrainingOptions) -> int:
    """Bytes of a checkpoint."""
    return WRITTEN * parameters(options)


def kept_bytes(options: PretrainingOptions) -> int:
    """Bytes of all that are there at once."""
    return _KEPT * checkpoint_bytes(options)


def saving_seconds(options: PretrainingOptions, nodes: int, shared_class: str) -> int:
    """How long pods may take to save once they are told to stop: the checkpoint that is being written, then the last.

    `shared_class` is that of their claim, if they have one. Nodes share what a share takes, and each writes to a
    container on its own.
    """
    rate = nodes * _CONTAINER_BYTES_S if options.checkpoint_container else _share_bytes_s(shared_class, options)
    return _LAST_STEP_S + math.ceil(2 * checkpoint_bytes(options) / rate)


def _share_bytes_s(shared_class: str, options: PretrainingOptions) -> float:
    """Premium shares get more with their size (same page, provisioned v1); others count as standard."""
    if shared_class != SHARED_CLASS and "premium" not in shared_class:
        return _STANDARD_BYTES_S
    gib = claim_gib(kept_bytes(options))
    return (100 + math.ceil(0.04 * gib) + math.ceil(0.06 * gib)) * 2**20
