"""The interface of workloads to the settings. The loader rejects a stack that cannot run one of its workloads.

`workloads/` registers a WorkloadSpec per module. `config` never imports `workloads`: the program passes the registry to
`config.reading.loader.load`.
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
    """A workload's requirements of the platform, besides GPUs."""

    infiniband: bool = False
    one_node_without: bool = False
    mpi: bool = False
    """Whether it needs a Volcano Job, which gives all pods the names and keys for MPI."""

    def infiniband_on(self, nodes: int) -> bool:
        return self.infiniband and not (self.one_node_without and nodes == 1)


@dataclass(frozen=True, kw_only=True)
class GpuPods:
    """The fields of a workload's GPU pods that `podOverrides` cannot change (config/rules/pod_needs.py)."""

    container: str
    restart_policy: Literal["Never", "Always"] = "Never"
    """The policy that the owner of the pods needs: jobs retry with new pods, and a Deployment accepts only Always."""


NodeCheckDepth = Literal["off", "light", "full"]
"""The depth of the node check before a job: off, in seconds, or in minutes with measured performance."""


@dataclass(frozen=True)
class Member:
    """A user of a team. None stands for the first of the team's `users`."""

    team: str
    user: str | None


class WorkloadOptions(Model):
    """The base of all workload options, under `workloadOptions.<name>`."""

    pool: str | None = None
    """GPU pool to run on; by default the most suitable one.

    config/rules/placement.py chooses it.
    """
    pod_overrides: PodOverrides = {}
    """Changes to the template of the workload's GPU pods, merged last, as in `{spec: {priorityClassName: low}}`.

    config/schema/overrides.py defines the merge.
    """
    image: Annotated[Image | None, EMPTY_IS_UNSET] = None
    """A complete image reference, instead of the project's own image."""
    node_check: NodeCheckDepth = "off"
    """Check of each node before the job starts there, on the devices that the job gets. `light` takes seconds. `full`
    measures performance and takes minutes. A node that fails is tainted, and the job starts on other nodes.
    """

    @property
    def gpus_per_node(self) -> int | None:
        """The GPUs per node, from its option `gpus`; None for whole nodes with all their HCAs."""
        found: int | None = getattr(self, "gpus", None)
        return found

    def gpus_on(self, size: VmSku) -> int:
        return size.gpus if self.gpus_per_node is None else self.gpus_per_node

    @property
    def containers(self) -> tuple[str, ...]:
        """The blob containers that its pods mount (`...Container`)."""
        named = (value for name, value in self if name.endswith("_container"))
        return tuple(dict.fromkeys(filter(None, named)))

    @property
    def keeps_files(self) -> bool:
        """Whether it keeps users' files in a claim in the stack's own namespace."""
        return False

    @property
    def member(self) -> Member | None:
        """The team that the workload runs in, and its user; None if it runs in the stack's own namespace."""
        return None

    @property
    def open_end(self) -> str:
        """The unset option that would end the workload; empty if it ends by itself."""
        return ""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A candidate placement, for the workload's own rules."""

    pool_key: str
    pool: PoolSettings
    pool_path: Path
    """The path of the pool's settings: ("pools", key), or empty for the default pool."""
    most_path: Path
    nodes: int
    pools: Mapping[str, PoolSettings]
    storage: StorageSettings
    shared_files: KeptOn
    scratch: bool
    shared_class: bool = False
    on_shared_platform: bool = False
    teams: Mapping[str, TeamSettings] = field(default_factory=dict)
    slack_gpus: int = 0
    operators: Collection[str] = ()
    scheduler: str = VOLCANO
    preempts: bool = True

    def too_few(self, workload: str, nodes: int) -> Problem:
        what = f"is {self.pool.max_nodes}, but workload {workload} needs {nodes} {'node' if nodes == 1 else 'nodes'}"
        allowed = f"{nodes} to {MAX_NODES}, or a stack without {workload}"
        return Problem(self.most_path, what, allowed, by_hand(self.most_path))


def other_size(path: Path, what: str, sizes: Iterable[str], workload: str) -> Problem:
    """Returns the problem of an unsuitable VM size. The user chooses another size, which may cost more."""
    return Problem(path, what, f"{by_price(sizes)}; or a stack without {workload}", by_hand(path))


Chosen = TypeVar("Chosen", bound=WorkloadOptions)


class WorkloadSpec(Protocol[Chosen]):
    """The interface of one workload to the settings, with read-only attributes."""

    @property
    def name(self) -> str:
        """The hyphenated name, as in `workloads: [nccl-allreduce]`."""

    @property
    def requires(self) -> Requirements:
        return Requirements()

    @property
    def options(self) -> type[Chosen]:
        """The model of its options; every option has a default."""

    @property
    def every_pool(self) -> bool:
        """Whether it runs on every GPU pool, with a separate name on each, instead of only on the best pool."""
        return False

    @property
    def pods(self) -> GpuPods:
        return GpuPods(container=self.name)

    def nodes(self, options: Chosen, pool_nodes: int) -> int:
        """Returns how many nodes it uses on a pool with at least `pool_nodes` nodes.

        The option `numNodes` sets the number, by default all nodes. A workload without this option uses part of one
        node.
        """
        chosen: int | None = getattr(options, "num_nodes", 1)
        return pool_nodes if chosen is None else chosen

    @property
    def keys(self) -> Mapping[str, str]:
        """Top-level settings that set options, such as {"modelSize": "modelSize"}; usually empty."""
        return {}

    def problems(self, options: Chosen, candidate: Candidate) -> Iterable[Problem]:
        """Returns errors of the options in this placement, such as a model that does not fit or a missing container.

        Paths start at the top of the stack file: ("workloadOptions", name, ...), or the top-level key.
        """
        return ()


WorkloadCatalogue = Mapping[str, WorkloadSpec[Any]]
