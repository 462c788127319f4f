"""How large checkpoints are, and how long it takes at worst to write them where they go."""

from __future__ import annotations

import math

from config.schema.storage import SHARED_CLASS
from workloads._team_training import claim_gib
from workloads.pytorch_pretraining.memory import parameters
from workloads.pytorch_pretraining.options import PretrainingOptions

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


def written(options: PretrainingOptions) -> int:
    """Bytes of a checkpoint."""
    return WRITTEN * parameters(options)


def kept(options: PretrainingOptions) -> int:
    """Bytes of all that are there at once."""
    return _KEPT * written(options)


def seconds(options: PretrainingOptions, nodes: int, shared_class: str) -> int:
    """How long pods may take to save once they are told to stop: the checkpoint that is being written, then the last.

    `shared_class` is that of their claim, if they have one. Nodes share what a share takes, and each writes to a
    container on its own.
    """
    rate = nodes * _CONTAINER_BYTES_S if options.checkpoint_container else _share_bytes_s(shared_class, options)
    return _LAST_STEP_S + math.ceil(2 * written(options) / rate)


def _share_bytes_s(shared_class: str, options: PretrainingOptions) -> float:
    """Premium shares get more with their size (same page, provisioned v1); others count as standard."""
    if shared_class != SHARED_CLASS and "premium" not in shared_class:
        return _STANDARD_BYTES_S
    gib = claim_gib(kept(options))
    return (100 + math.ceil(0.04 * gib) + math.ceil(0.06 * gib)) * 2**20
