"""Options of the bisection, under `workloadOptions.nccl-bisection`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from config.schema.base import Count
from workloads._mpi import MpiOptions

NAME = "nccl-bisection"


class NcclBisectionOptions(MpiOptions):
    """Where to look, and what is good enough."""

    num_nodes: Count | None = None
    """Nodes to search, two or more; by default all that the pool is certain to have."""
    floor_gbs: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Least bus bandwidth of whole nodes that is good, GB/s, without SHARP; by default the VM size's.

    Of a rail it is that rail's part.
    """
