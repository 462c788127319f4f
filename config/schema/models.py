"""The settings of a stack, as `config.reading.loader` reads them from Pulumi's configuration."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BeforeValidator, SerializeAsAny, field_validator

from config.data.near import alike, hint, near
from config.data.skus import catalogue
from config.problems.fixes import text_of
from config.schema.base import AS_TEXT, EMPTY_IS_UNSET, Model, Unfit, number_in, protects, stated, unfit, unfits
from config.schema.cluster import ClusterSettings
from config.schema.names import Names, StackName
from config.schema.network import OF_ACCOUNT, OF_FILES, OF_REGISTRY, NetworkSettings, Use
from config.schema.operators import Operators
from config.schema.pools import GpuSku, NodeCount, PoolSettings
from config.schema.regions import Region
from config.schema.registry import RegistrySettings
from config.schema.storage import SHARED_CLASS, KeptOn, StorageSettings
from config.schema.teams import Gpus, TeamSettings
from config.schema.workload import Chosen

DEFAULT_POOL = "gpu"


def _dollars(value: Any) -> float:
    """Refuses what is no amount of money: true is not 1."""
    try:
        amount = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        amount = -1.0
    if not 0 <= amount < inf:
        allowed = "US dollars an hour, as in 98.32"
        raise unfit(f"is {value!r}, which is not a price", number_in(value) or None, allowed=allowed)
    return amount


Price = Annotated[float, BeforeValidator(_dollars)]
"""US dollars an hour."""
TagValue = Annotated[str, BeforeValidator(lambda value: text_of(value) if isinstance(value, bool) else value), AS_TEXT]
"""Text, also where YAML or Pulumi took it for a number or for true or false."""


def _of_no_size(name: str) -> Unfit:
    """A price goes to another size only where that is plainly meant: H100 alone could be three of them."""
    known, likely = sorted(catalogue()), near(name, catalogue())
    plain = [size.lower().removeprefix("standard_") for size in likely]
    if alike(name.lower().removeprefix("standard_"), plain):
        return Unfit("is not a known VM size", below=(name,), known=known)
    return Unfit(f"is not a known VM size{hint(likely)}", below=(name,), allowed=", ".join(known))


class Charts(Model):
    """Where charts come from."""

    source: Annotated[str | None, EMPTY_IS_UNSET] = None
    """An OCI registry, or a folder of unpacked charts, in place of the charts' own places.

    With `oci://` before it; in a folder, each chart has one of its own.
    """


class Images(Model):
    """Where images come from."""

    registry: Annotated[str | None, EMPTY_IS_UNSET] = None
    """A registry that mirrors all images.

    Without a scheme; by default each image's own.
    """


class StackFile(Model):
    """What a user may set: the keys under the project's name in a stack file, as Pulumi.yaml describes them."""

    location: Region = "eastus"
    """Azure region, of any cloud. If it is unset, `azure-native:location` is used; if both are set and differ, the
    stack is refused. Previews print the region, the subscription and the tenant. One that Azure has opened since the
    date in `config/data/regions.yaml` is one more word in that file. Refused for a platform that is up elsewhere.
    """
    vm_sku: GpuSku | None = None
    """VM size of the GPU pool; needed unless `pools` is set."""
    node_count: NodeCount = 2
    """Nodes of the GPU pool, 0 to 1000."""
    workloads: tuple[str, ...] = ()
    """What to run, separated by commas or as a list."""
    workload_options: dict[str, dict[str, Any]] = {}
    """Options of each workload, under its name."""
    platform_stack: Annotated[str | None, EMPTY_IS_UNSET] = None
    """The stack whose platform to run on, by its name or as organization/project/name; by default the stack has a
    platform of its own.
    """
    cluster: ClusterSettings = ClusterSettings()
    """The AKS cluster and how one gets into it."""
    network: NetworkSettings = NetworkSettings()
    """The network of nodes and of private endpoints; by default AKS makes one for its nodes."""
    pools: dict[str, PoolSettings] = {}
    """GPU pools by key, in place of `vmSku` and `nodeCount`."""
    operators: SerializeAsAny[Operators] = Operators()
    """What is installed in the cluster."""
    teams: dict[str, TeamSettings] = {}
    """Teams by name, which is that of their namespace; their jobs queue by `operators.kueue`."""
    slack_gpus: Annotated[Gpus, protects("limit")] = 0
    """GPUs that no team has as its own: they are in a queue without jobs, of which all teams may borrow."""
    charts: Charts = Charts()
    """Where charts come from, in place of their own places."""
    images: Images = Images()
    """Where images come from, in place of their own registries."""
    registry: RegistrySettings = RegistrySettings()
    """The container registry for the images of `docker/`."""
    storage: StorageSettings = StorageSettings()
    """Blob storage: accounts, their containers and how they are mounted."""
    tags: dict[str, TagValue] = {}
    """Tags of all resources that the stack and AKS make in Azure, such as `CostCenter: "4711"`; they change
    in place. A stack with `platformStack` has its own, or else those of the platform.
    """
    prices: dict[str, Price] = {}
    """What a node of a VM size costs you, US dollars an hour, in place of Azure's list price."""

    @field_validator("prices")
    @classmethod
    def _are_of_sizes(cls, prices: dict[str, float]) -> dict[str, float]:
        if faults := [_of_no_size(name) for name in prices if name not in catalogue()]:
            raise unfits(faults)
        return prices

    @property
    def shared_files(self) -> KeptOn:
        """What shared files are kept on: with `network.private`, on nothing that has a public address."""
        otherwise: KeptOn = "class" if self.shared_class else "none" if self.network.private else "smb"
        return self.storage.shared_files or otherwise

    @property
    def shared_class(self) -> str | None:
        """The StorageClass that claims of shared files are of.

        None where a workload makes one of its own (`smb`), and where there are none.
        """
        storage = self.storage
        if storage.shared_files:
            return SHARED_CLASS if storage.shared_files == "nfs" else None
        return storage.shared_class or self.operators.shared_class

    def entrances(self) -> tuple[Use, ...]:
        """What there are private endpoints for, a use for each."""
        accounts = OF_ACCOUNT * len(self.storage.made_accounts())
        private = (*OF_REGISTRY, *accounts) if self.network.private else ()
        return (*private, *OF_FILES) if self.shared_files == "nfs" else private

    def gpu_pools(self) -> dict[str, PoolSettings]:
        """All GPU pools by key: `pools`, or else the one that `vmSku` and `nodeCount` describe."""
        if self.pools or self.vm_sku is None:
            return dict(sorted(self.pools.items()))
        return {DEFAULT_POOL: PoolSettings(vm_sku=self.vm_sku, count=self.node_count)}


Shared = TypeVar("Shared", bound=StackFile)
SHARED = ("vm_sku", "node_count", "pools", "operators", "storage", "images", "teams", "slack_gpus", "tags")
"""Settings of a platform that hold for workloads of other stacks too."""
OVERRIDABLE = ("images", "tags")
"""Those of them that another stack may set for itself."""


class Lending(Model, Generic[Shared]):
    """The output `platform`: what a platform tells stacks that run on it, nothing of it secret."""

    settings: Shared
    """The shared ones."""
    login_server: str
    """Host of the registry with the images of `docker/`."""
    containers: dict[str, dict[str, Any]] = {}
    """Blob containers by name, as components/stack_outputs.py describes them."""
    federation: dict[str, str] | None = None
    """How namespaces get identities (components/azure/identity.py), if containers are mounted by identity."""


@dataclass(frozen=True)
class Lender:
    """A platform of another stack."""

    stack: StackName
    lending: Lending[StackFile]

    def with_shared_settings(self, consumer: StackFile) -> StackFile:
        """Returns the settings of a consumer stack with those of the platform, which has only shared ones."""
        own = {name: value for name, value in stated(consumer).items() if name not in SHARED or name in OVERRIDABLE}
        return type(consumer).model_validate(stated(self.lending.settings) | own, by_alias=False, by_name=True)


@dataclass(frozen=True)
class Placement(Generic[Chosen]):
    """A workload of the stack, with its checked options and the pool that it runs on."""

    workload: str
    name: str
    """Of its job: the workload's, and the pool's key behind it where it runs on every pool."""
    options: Chosen
    pool_key: str
    pool: PoolSettings
    nodes: int
    """How many of the pool's nodes it uses."""

    @property
    def gpus(self) -> int:
        """How many GPUs it takes on all of them."""
        return self.nodes * self.options.gpus_on(self.pool.sku)

    @property
    def where(self) -> str:
        """On what it runs, and on how much."""
        nodes = f"{self.nodes} {'node' if self.nodes == 1 else 'nodes'}"
        gpus = f"{self.gpus or 'no'} {'GPUs' if self.gpus > 1 else 'GPU'}"
        pool = f"{'Spot ' if self.pool.spot else ''}pool {self.pool_key}"
        return f"{nodes} of {pool}, {gpus} ({self.pool.vm_sku})"

    def __str__(self) -> str:
        """For previews."""
        return f"{self.name}: {self.where}"


class Settings(StackFile):
    """All settings of one stack, checked. Made by `config.reading.loader` only."""

    project: str
    stack: str
    placements: dict[str, Placement[Any]] = {}
    """What runs where, by the names of the jobs, in the order of `workloads`."""
    rdma_resource: str
    """The extended resource of InfiniBand HCAs, as pods request it: nvidia.com/mlnxnics."""
    location_key: str = "location"
    """Which key says the region; the provider's may."""
    scratch_folder: str | None = None
    """Where nodes have NVMe scratch, of pools that ask for it; None where nothing makes it."""
    lender: Lender | None = None
    """The platform that `platformStack` names; its `SHARED` settings are then these settings' too."""

    @property
    def names(self) -> Names:
        """Names in Azure."""
        return Names(self.project, self.stack, self.cluster.resource_group)

    @property
    def keeps_files(self) -> bool:
        """Whether claims in the cluster may keep users' files: a workload's, or those of a class of shared files."""
        own = any(placement.options.keeps_files for placement in self.placements.values())
        return own or (self.lender is None and self.shared_class is not None)

    def users(self, container: str) -> list[str]:
        """The stack's workloads that mount a blob container or fill it."""
        return [name for name, placement in self.placements.items() if container in placement.options.containers]
