"""Options of the NCCL all-reduce, under `workloadOptions.nccl-allreduce`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from config.base import NOT_BOOL
from config.workload import WorkloadOptions

WholeNumber = Annotated[int, NOT_BOOL]
Size = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*[KMG]?$")]
"""A message size as nccl-tests reads it: bytes, or with K, M or G."""


class NcclAllreduceOptions(WorkloadOptions):
    """What to measure, and what passes."""

    num_nodes: Annotated[WholeNumber, Field(ge=1)] | None = None
    """Nodes to run on; by default all of the pool."""
    sharp: bool = True
    """Reduce in the InfiniBand switches, where the fabric can."""
    min_bytes: Size = "8M"
    max_bytes: Size = "16G"
    """The largest message is the one judged; floors are published for 16G."""
    iterations: Annotated[WholeNumber, Field(ge=1, le=10000)] = 20
    floor_gbs: Annotated[float, Field(gt=0)] | None = None
    """Least bus bandwidth that passes, GB/s; by default the catalogue's for VM size, node count and SHARP."""
    ssh_timeout_seconds: Annotated[WholeNumber, Field(ge=10, le=86400)] = 1800
    """How long the master waits for all workers to answer; their image has several GB."""
    image: str | None = None
    """A whole image reference, in place of the one built from docker/nccl-test."""
