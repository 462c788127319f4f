"""The settings of a stack, which `config.reading.loader` reads from Pulumi's configuration."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BeforeValidator, SerializeAsAny, field_validator

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
    try:
        amount = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        amount = -1.0
    if not 0 <= amount < inf:
        allowed = "US dollars per hour, as in 98.32"
        raise unfit(f"is {value!r}, not a price", number_in(value) or None, allowed=allowed)
    return amount


Price = Annotated[float, BeforeValidator(_dollars)]
TagValue = Annotated[str, BeforeValidator(lambda value: text_of(value) if isinstance(value, bool) else value), AS_TEXT]
"""Text, even if YAML or Pulumi reads it as a number or a boolean."""


class Charts(Model):
    """The source of Helm charts."""

    source: Annotated[str | None, EMPTY_IS_UNSET] = None
    """An OCI registry, or a folder of unpacked charts, in place of the charts' own repositories.

    A registry starts with `oci://`; a folder has one subfolder per chart.
    """


class Images(Model):
    """The source of container images."""

    registry: Annotated[str | None, EMPTY_IS_UNSET] = None
    """A registry that mirrors all images.

    Without a scheme; by default, images come from their own registries.
    """


class StackFile(Model):
    """The user's settings: the keys under the project's name in a stack file, as in Pulumi.yaml."""

    location: Region = "eastus"
    """Azure region, in any cloud. If it is unset, `azure-native:location` is used; if both are set and differ, the
    stack is rejected. Previews print the region, the subscription and the tenant. To use a region that Azure opened
    after the date in `config/data/regions.yaml`, add it to that file. Cannot change once the platform is deployed.
    """
    vm_sku: GpuSku | None = None
    """VM size of the GPU pool; required unless `pools` is set."""
    node_count: NodeCount = 2
    """Nodes of the GPU pool, 0 to 1000."""
    workloads: tuple[str, ...] = ()
    """Workloads to run, separated by commas or as a list."""
    workload_options: dict[str, dict[str, Any]] = {}
    """Options of each workload, under its name."""
    platform_stack: Annotated[str | None, EMPTY_IS_UNSET] = None
    """The stack that provides the platform, as a name or as organization/project/name; by default this stack creates
    its own platform.
    """
    cluster: ClusterSettings = ClusterSettings()
    """The AKS cluster and access to it."""
    network: NetworkSettings = NetworkSettings()
    """The network of nodes and of private endpoints; by default AKS creates a network for the nodes."""
    pools: dict[str, PoolSettings] = {}
    """GPU pools by key, instead of `vmSku` and `nodeCount`."""
    operators: SerializeAsAny[Operators] = Operators()
    """The operators in the cluster."""
    teams: dict[str, TeamSettings] = {}
    """Teams by name. Each team has a namespace with this name, and `operators.kueue` queues its jobs."""
    slack_gpus: Annotated[Gpus, protects("limit")] = 0
    """GPUs that no team owns and all teams may borrow."""
    charts: Charts = Charts()
    """Source of charts, instead of their own repositories."""
    images: Images = Images()
    """Source of images, instead of their own registries."""
    registry: RegistrySettings = RegistrySettings()
    """The container registry for the images of `docker/`."""
    storage: StorageSettings = StorageSettings()
    """Blob storage: accounts, containers and mounts."""
    tags: dict[str, TagValue] = {}
    """Tags of all Azure resources that the stack and AKS create, such as `CostCenter: "4711"`. Changes update the
    resources in place. A stack with `platformStack` uses its own tags, or the platform's tags if it has none.
    """
    prices: dict[str, Price] = {}
    """Your prices of nodes by VM size, in US dollars per hour, instead of Azure's list prices."""

    @field_validator("prices")
    @classmethod
    def _are_of_sizes(cls, prices: dict[str, float]) -> dict[str, float]:
        unknown = (name for name in prices if name not in catalogue())
        if faults := [Unfit("is not a known VM size", below=(name,), known=catalogue()) for name in unknown]:
            raise unfits(faults)
        return prices

    @property
    def shared_files(self) -> KeptOn:
        """The storage of shared files; with `network.private`, the default has no public address."""
        otherwise: KeptOn = "class" if self.shared_class else "none" if self.network.private else "smb"
        return self.storage.shared_files or otherwise

    @property
    def shared_class(self) -> str | None:
        """The StorageClass of claims for shared files; None if a workload creates its own class (`smb`), or if nothing
        stores shared files (`none`).
        """
        storage = self.storage
        if storage.shared_files:
            return SHARED_CLASS if storage.shared_files == "nfs" else None
        return storage.shared_class or self.operators.shared_class

    def entrances(self) -> tuple[Use, ...]:
        accounts = OF_ACCOUNT * len(self.storage.made_accounts())
        private = (*OF_REGISTRY, *accounts) if self.network.private else ()
        return (*private, *OF_FILES) if self.shared_files == "nfs" else private

    def gpu_pools(self) -> dict[str, PoolSettings]:
        if self.pools or self.vm_sku is None:
            return dict(sorted(self.pools.items()))
        return {DEFAULT_POOL: PoolSettings(vm_sku=self.vm_sku, count=self.node_count)}


Shared = TypeVar("Shared", bound=StackFile)
SHARED = ("vm_sku", "node_count", "pools", "operators", "storage", "images", "teams", "slack_gpus", "tags")
OVERRIDABLE = ("images", "tags")


class PlatformOutput(Model, Generic[Shared]):
    """The output `platform` for consumer stacks, without secrets."""

    settings: Shared
    login_server: str
    """The registry host of the images of `docker/`."""
    containers: dict[str, dict[str, Any]] = {}
    """Blob containers by name, as in components/stack_outputs.py."""
    federation: dict[str, str] | None = None
    """The data for the identities of namespaces (components/azure/identity.py); None if no mount uses an identity."""


@dataclass(frozen=True)
class PlatformStack:
    """The platform of another stack."""

    stack: StackName
    output: PlatformOutput[StackFile]

    def with_shared_settings(self, consumer: StackFile) -> StackFile:
        own = {name: value for name, value in stated(consumer).items() if name not in SHARED or name in OVERRIDABLE}
        return type(consumer).model_validate(stated(self.output.settings) | own, by_alias=False, by_name=True)


@dataclass(frozen=True)
class Placement(Generic[Chosen]):
    """A workload with its validated options and its pool."""

    workload: str
    name: str
    """The job's name: the workload's name, followed by the pool's key if the workload runs on every pool."""
    options: Chosen
    pool_key: str
    pool: PoolSettings
    nodes: int

    @property
    def gpus(self) -> int:
        return self.nodes * self.options.gpus_on(self.pool.sku)

    @property
    def where(self) -> str:
        nodes = f"{self.nodes} {'node' if self.nodes == 1 else 'nodes'}"
        gpus = f"{self.gpus or 'no'} {'GPUs' if self.gpus > 1 else 'GPU'}"
        pool = f"{'Spot ' if self.pool.spot else ''}pool {self.pool_key}"
        return f"{nodes} of {pool}, {gpus} ({self.pool.vm_sku})"

    def __str__(self) -> str:
        return f"{self.name}: {self.where}"


class Settings(StackFile):
    """All validated settings of one stack. Only `config.reading.loader` creates it."""

    project: str
    stack: str
    placements: dict[str, Placement[Any]] = {}
    """The placement of each job, by name, in the order of `workloads`."""
    rdma_resource: str
    """The extended resource of InfiniBand HCAs, as pods request it: nvidia.com/mlnxnics."""
    location_key: str = "location"
    """The key that sets the region; it may be a key of the provider."""
    scratch_folder: str | None = None
    """The path of NVMe scratch on nodes that have it; None if no operator creates it."""
    shared_platform: PlatformStack | None = None
    """The platform of `platformStack`; these settings include its `SHARED` settings."""

    @property
    def names(self) -> Names:
        return Names(self.project, self.stack, self.cluster.resource_group)

    @property
    def keeps_files(self) -> bool:
        own = any(placement.options.keeps_files for placement in self.placements.values())
        return own or (self.shared_platform is None and self.shared_class is not None)

    def users(self, container: str) -> list[str]:
        return [name for name, placement in self.placements.items() if container in placement.options.containers]
