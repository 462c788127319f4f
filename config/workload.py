"""What the settings must know of a workload to refuse a stack that could not run it.

`workloads/` registers its modules; each offers an object of this shape. `config` never imports `workloads`: the program
hands the registry to `config.loader.load`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from config.base import Model


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """What a platform must have for a workload to run at all."""

    gpus: bool = True
    infiniband: bool = False
    scheduler: Literal["volcano"] | None = None
    min_nodes: int = 1
    """Fewest nodes of one pool that it makes sense on."""


class WorkloadOptions(Model):
    """Base of every workload's own options, found under `workloadOptions.<name>`."""

    pool: str | None = None
    """Key of the GPU pool to run on; by default the first that has what the workload requires, and nodes enough."""


class WorkloadSpec(Protocol):
    """One workload, as the settings see it. Attributes are read only."""

    @property
    def name(self) -> str:
        """Hyphenated, as in `workloads: [nccl-allreduce]`."""

    @property
    def requires(self) -> Requirements:
        """What the platform must have."""

    @property
    def options(self) -> type[WorkloadOptions]:
        """Model of its options; every option has a default."""

    def nodes(self, options: WorkloadOptions, pool_nodes: int) -> int:
        """How many nodes it would use with these options on a pool of `pool_nodes`."""


WorkloadCatalogue = Mapping[str, WorkloadSpec]
