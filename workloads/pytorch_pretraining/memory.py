"""Calculates the trainer's memory, the size of checkpoints, and the longest time to write them.

The memory formulas are copies of those in docker/pytorch-pretraining/pretraining/memory.py, which the program cannot
import; a test compares both.
"""

from __future__ import annotations

import math

from config.data.skus import VmSku
from config.schema.storage import SHARED_CLASS
from workloads._lib.team_training import claim_gib, usable_bytes
from workloads.pytorch_pretraining.options import PretrainingOptions

PER_LAYER, PER_LAYER_FP8, PER_LAYER_RECOMPUTED, PER_SYMBOL = 28, 21, 2, 2.4
"""Bytes per token that are kept for the backward pass, for each unit of a layer's width (in bf16, in FP8, recomputed)
and for each entry of the vocabulary (docs/performance.md).
"""
GATHERED_BLOCK, GATHERED_REST = 8, 2
"""Bytes per parameter that FSDP gathers at once: in a block, and outside blocks."""
WRITTEN = 12
"""A checkpoint's bytes per parameter: the fp32 master and two moments."""
_KEPT = 3
"""Checkpoints on disk: two, and one that is being written."""
_CONTAINER_BYTES_S = 0.5e9
"""Estimated bytes per second from a node to blob storage."""
_STANDARD_BYTES_S = 60 * 2**20
"""Rate of a standard share for all clients, bytes per second. `azurefile-csi` creates it in an account without large
file shares (Azure, Scalability and performance targets for Azure Files; azurefile-csi-driver,
docs/driver-parameters.md).
"""
_LAST_STEP_S = 120


def parameters(options: PretrainingOptions) -> int:
    """Returns the model's parameters: blocks without biases, one embedding that is also the output, and positions."""
    return options.size.layers * _of_block(options) + _of_rest(options)


def _of_block(options: PretrainingOptions) -> int:
    return 12 * options.size.width**2 + 2 * options.size.width


def _of_rest(options: PretrainingOptions) -> int:
    return (options.vocabulary + options.sequence + 1) * options.size.width


def bytes_per_gpu(options: PretrainingOptions, gpus: int) -> float:
    """Returns the minimum bytes per GPU: one sequence at once, all states sharded, blocks recomputed in backward."""
    every = parameters(options)
    states = every * (2 + 4 + 12 / gpus)
    if gpus > 1:
        gathered = GATHERED_BLOCK * _of_block(options) + GATHERED_REST * _of_rest(options)
        states = min(states, every * 16 / gpus + gathered + (every if options.fp8 else 0))
    per_layer = PER_LAYER_FP8 if options.fp8 else PER_LAYER
    kept = PER_LAYER_RECOMPUTED * options.size.layers + per_layer
    return states + options.sequence * (kept * options.size.width + PER_SYMBOL * options.vocabulary)


def fits(options: PretrainingOptions, sku: VmSku, gpus: int) -> bool:
    return bytes_per_gpu(options, gpus) <= usable_bytes(sku)


def checkpoint_bytes(options: PretrainingOptions) -> int:
    return WRITTEN * parameters(options)


def kept_bytes(options: PretrainingOptions) -> int:
    return _KEPT * checkpoint_bytes(options)


def saving_seconds(options: PretrainingOptions, nodes: int, shared_class: str) -> int:
    """Returns the seconds that pods get to save after the stop signal: the checkpoint being written, then the last one.

    `shared_class` is the class of the claim, if any. Nodes share the rate of a file share, but not that of a container.
    """
    rate = nodes * _CONTAINER_BYTES_S if options.checkpoint_container else _share_bytes_s(shared_class, options)
    return _LAST_STEP_S + math.ceil(2 * checkpoint_bytes(options) / rate)


def _share_bytes_s(shared_class: str, options: PretrainingOptions) -> float:
    """Returns the rate of a file share. Larger premium shares are faster (Azure Files, provisioned v1). All other
    shares count as standard.
    """
    if shared_class != SHARED_CLASS and "premium" not in shared_class:
        return _STANDARD_BYTES_S
    gib = claim_gib(kept_bytes(options))
    return (100 + math.ceil(0.04 * gib) + math.ceil(0.06 * gib)) * 2**20
