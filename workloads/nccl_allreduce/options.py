"""Options of the NCCL all-reduce, under `workloadOptions.nccl-allreduce`."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from config.schema.base import AS_TEXT, PLAIN_DIGITS, Count, may_be, unfit
from workloads._lib.mpi import MpiOptions

NAME = "nccl-allreduce"

Size = Annotated[
    str,
    StringConstraints(pattern=r"^[1-9][0-9]{0,14}[KMG]?$"),
    AS_TEXT,
    may_be("a number of bytes, or a number with K, M or G such as 8M; minBytes at most maxBytes"),
]
"""A message size in nccl-tests' format: bytes, or a number with K, M or G."""
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class NcclAllreduceOptions(MpiOptions):
    """Options of the NCCL all-reduce."""

    num_nodes: Count | None = None
    """Number of nodes; by default the pool's `count` or `autoscale.min`."""
    sharp: bool = True
    """Reduce in the InfiniBand switches, if the fabric supports it."""
    min_bytes: Size = "8M"
    """Smallest message size."""
    max_bytes: Size = "16G"
    """Largest message size, which decides the verdict.

    Floors are published for 16G.
    """
    iterations: Annotated[int, Field(ge=1, le=10000), PLAIN_DIGITS] = 20
    """Iterations for each size."""
    floor_gbs: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Minimum bus bandwidth to pass, GB/s; by default the value for the VM size.

    The default is in the catalogue, and depends on VM size, node count and SHARP.
    """

    @model_validator(mode="after")
    def _sizes_in_order(self) -> Self:
        if _bytes(self.min_bytes) > _bytes(self.max_bytes):
            raise unfit(f"is {self.max_bytes}, less than minBytes ({self.min_bytes})", self.min_bytes, "maxBytes")
        return self


def _bytes(size: str) -> int:
    unit = _UNITS.get(size[-1])
    return int(size[:-1]) * unit if unit else int(size)
