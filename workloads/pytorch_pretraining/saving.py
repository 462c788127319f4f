"""How large checkpoints are, and how long it takes at worst to write them where they go."""

from __future__ import annotations

import math

from workloads._team_training import claim_gib
from workloads.pytorch_pretraining.memory import parameters
from workloads.pytorch_pretraining.options import PretrainingOptions

WRITTEN = 12
"""Bytes of a checkpoint for each parameter: its fp32 master, and two moments."""
_KEPT = 3
"""Checkpoints that are there at once: two, and the one that is being written."""
_CONTAINER_BYTES_S = 0.5e9
"""A node's, to blob storage: est."""
_FILE_BYTES_S = 60 * 2**20
"""To each file of a standard share, as AKS's class `azurefile-csi` makes; every process writes one at a time (Azure,
Scalability and performance targets for Azure Files).
"""
_LAST_STEP_S = 120
"""For the step that runs, and what is written already."""


def written(options: PretrainingOptions) -> int:
    """Bytes of a checkpoint."""
    return WRITTEN * parameters(options)


def kept(options: PretrainingOptions) -> int:
    """Bytes of all that are there at once."""
    return _KEPT * written(options)


def seconds(options: PretrainingOptions, nodes: int, gpus: int) -> int:
    """How long pods may take to save once they are told to stop: the checkpoint that is being written, then the last.

    `gpus` are each node's. All share what a share takes, and each node with a container writes on its own.
    """
    rate = nodes * _CONTAINER_BYTES_S
    if not options.checkpoint_container:
        rate = min(nodes * gpus * _FILE_BYTES_S, _share_bytes_s(claim_gib(kept(options))))
    return _LAST_STEP_S + math.ceil(2 * written(options) / rate)


def _share_bytes_s(gib: int) -> float:
    """Of a premium share of that size, all of its clients together (Azure, Understand Azure Files billing)."""
    return (100 + math.ceil(0.04 * gib) + math.ceil(0.06 * gib)) * 2**20
