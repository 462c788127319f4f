"""What the settings must know of a workload to refuse a stack that could not run it.

`workloads/` registers its modules; each offers an object of this shape. `config` never imports `workloads`: the program
hands the registry to `config.reading.loader.load`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Protocol, TypeVar

from config.data.prices import by_price
from config.data.scheduling import VOLCANO
from config.data.skus import VmSku
from config.problems.errors import Problem
from config.problems.fixes import Path, by_hand
from config.schema.base import EMPTY_IS_UNSET, Model
from config.schema.overrides import PodOverrides
from config.schema.pools import MAX_NODES, PoolSettings
from config.schema.registry import Image
from config.schema.storage import KeptOn, StorageSettings
from config.schema.teams import TeamSettings


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """What a platform must have for a workload to run at all, beside GPUs, which all need."""

    infiniband: bool = False
    one_node_without: bool = False
    """On one node alone it does without InfiniBand."""
    mpi: bool = False
    """Its job is of Volcano's own kind, which gives all pods the names and keys by which MPI reaches them."""

    def infiniband_on(self, nodes: int) -> bool:
        """Whether it needs InfiniBand on so many nodes."""
        return self.infiniband and not (self.one_node_without and nodes == 1)


@dataclass(frozen=True, kw_only=True)
class GpuPods:
    """What a workload's pods on GPU nodes keep, whatever `podOverrides` say (config/rules/pod_needs.py)."""

    container: str
    """Name of the container that has the devices."""
    restart_policy: Literal["Never", "Always"] = "Never"
    """As what makes the pods needs it: jobs try again with new ones, a Deployment takes Always alone."""


NodeCheckDepth = Literal["off", "light", "full"]
"""How a node is checked before a job begins there: not, in seconds, or with what its devices achieve, in minutes."""


@dataclass(frozen=True)
class Member:
    """A user of a team; the first one of its `users` where none is named."""

    team: str
    user: str | None


class WorkloadOptions(Model):
    """Base of every workload's own options, found under `workloadOptions.<name>`."""

    pool: str | None = None
    """GPU pool to run on; by default the one that suits it best.

    config/rules/placement.py finds it.
    """
    pod_overrides: PodOverrides = {}
    """Laid over the template of its GPU pods, last, as in `{spec: {priorityClassName: low}}`.

    config/schema/overrides.py says how.
    """
    image: Annotated[Image | None, EMPTY_IS_UNSET] = None
    """A whole image reference, in place of the project's own."""
    node_check: NodeCheckDepth = "off"
    """Whether each node is checked before the job begins there, on the devices that it gets: `light` takes seconds,
    `full` minutes, for it measures what they achieve. A node that fails is tainted, and the job starts on others.
    """

    @property
    def gpus_per_node(self) -> int | None:
        """GPUs that it takes on each node, by its option `gpus`; None takes whole nodes, with all of their HCAs."""
        found: int | None = getattr(self, "gpus", None)
        return found

    def gpus_on(self, size: VmSku) -> int:
        """GPUs that it takes on a node of that size."""
        return size.gpus if self.gpus_per_node is None else self.gpus_per_node

    @property
    def containers(self) -> tuple[str, ...]:
        """Blob containers that its pods mount: what its options `...Container` name."""
        named = (value for name, value in self if name.endswith("_container"))
        return tuple(dict.fromkeys(filter(None, named)))

    @property
    def keeps_files(self) -> bool:
        """Whether it keeps users' files in a claim of the stack's own namespace."""
        return False

    @property
    def member(self) -> Member | None:
        """As whom, and of which team, it is made in that team's namespace; None in the stack's own namespace."""
        return None

    @property
    def open_end(self) -> str:
        """The option that would end it, where that is not set and it runs for weeks; empty for all else."""
        return ""


@dataclass(frozen=True, kw_only=True)
class Ground:
    """Where a workload is about to be placed, for the rules that only it knows."""

    pool_key: str
    pool: PoolSettings
    pool_path: Path
    """What stands before the pool's properties in the stack file: ("pools", key), or nothing for the default pool."""
    most_path: Path
    """Where the most nodes that the pool can have are set."""
    nodes: int
    pools: Mapping[str, PoolSettings]
    """All GPU pools of the platform, by key."""
    storage: StorageSettings
    """Of the platform: its blob containers, and the accounts that they are in."""
    shared_files: KeptOn
    """What the platform keeps shared files on."""
    scratch: bool
    """Whether the pool's nodes have NVMe scratch: the pool asks for it, and what makes it is on."""
    shared_class: bool = False
    """Whether the platform has a StorageClass of shared files."""
    guest: bool = False
    """Whether the platform is another stack's."""
    teams: Mapping[str, TeamSettings] = field(default_factory=dict)
    """Of the platform, by name."""
    slack_gpus: int = 0
    """GPUs that all of its teams may borrow."""
    operators: Collection[str] = ()
    """Keys of the operators that are on."""
    scheduler: str = VOLCANO
    """What alone places pods on its GPU nodes."""
    preempts: bool = True
    """Whether that has pods of a higher priority class drive out those of a lower one."""

    def too_few(self, workload: str, nodes: int) -> Problem:
        """The pool cannot have as many nodes as the workload needs."""
        what = f"is {self.pool.max_nodes}, but workload {workload} needs {nodes} {'node' if nodes == 1 else 'nodes'}"
        allowed = f"{nodes} to {MAX_NODES}, or a stack without {workload}"
        return Problem(self.most_path, what, allowed, by_hand(self.most_path))


def other_size(path: Path, what: str, sizes: Iterable[str], workload: str) -> Problem:
    """Returns the problem of a VM size that lacks what a workload needs: no command chooses one that costs more."""
    return Problem(path, what, f"{by_price(sizes)}; or a stack without {workload}", by_hand(path))


Chosen = TypeVar("Chosen", bound=WorkloadOptions)


class WorkloadSpec(Protocol[Chosen]):
    """One workload, as the settings see it. Attributes are read only."""

    @property
    def name(self) -> str:
        """Hyphenated, as in `workloads: [nccl-allreduce]`."""

    @property
    def requires(self) -> Requirements:
        """What the platform must have."""
        return Requirements()

    @property
    def options(self) -> type[Chosen]:
        """Model of its options; every option has a default."""

    @property
    def every_pool(self) -> bool:
        """Whether it runs on every GPU pool, each time under a name of its own, and not on the best one."""
        return False

    @property
    def pods(self) -> GpuPods:
        """What is fixed of its pods on GPU nodes."""
        return GpuPods(container=self.name)

    def nodes(self, options: Chosen, pool_nodes: int) -> int:
        """How many nodes it would use with these options on a pool that is certain to have `pool_nodes`.

        As many as the option `numNodes` says, or all of them where that is left open; without the option part of one.
        """
        chosen: int | None = getattr(options, "num_nodes", 1)
        return pool_nodes if chosen is None else chosen

    @property
    def keys(self) -> Mapping[str, str]:
        """Top-level settings that set an option of its: {"modelSize": "modelSize"}; mostly none."""
        return {}

    def problems(self, options: Chosen, ground: Ground) -> Iterable[Problem]:
        """What is wrong with its options where it is placed: a model that does not fit, a container that is not there.

        Paths begin at the top of the stack file: ("workloadOptions", name, ...), or the top-level key that was set.
        """
        return ()


WorkloadCatalogue = Mapping[str, WorkloadSpec[Any]]
