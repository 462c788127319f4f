"""The settings of a stack, as `config.loader` reads them from Pulumi's configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from config.base import EMPTY_IS_UNSET, PLAIN_DIGITS, Model, Text
from config.names import Names, StackName
from config.pools import MAX_NODES, GpuSku, NodeCount, PoolSettings
from config.references import Tag
from config.regions import Region
from config.registry import RegistrySettings
from config.skus import VmSku, sku
from config.storage import StorageSettings
from config.versions import versions
from config.workload import WorkloadOptions

DEFAULT_POOL = "gpu"

ObjectId = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"),
    Field(description="an object id, as in 0a0b0c0d-0000-0000-0000-000000000000"),
]
"""Object id of an Entra user, group or service principal."""

PrincipalType = Literal["User", "ServicePrincipal", "Group"]
"""What an object id is of, as role assignments call it; managed identities are service principals."""


class SystemPool(Model):
    """The pool that AKS and the operators' controllers run on."""

    vm_sku: str = "Standard_D4ads_v5"
    """ARM refuses to change it (PropertyChangeNotAllowed); components/existing.py tells the way."""
    count: Annotated[int, Field(ge=1, le=MAX_NODES), PLAIN_DIGITS] = 2
    taint: bool = False
    """Keeps workloads off it, by CriticalAddonsOnly=true:NoSchedule."""

    @property
    def sku(self) -> VmSku:
        """Its hardware."""
        return sku(self.vm_sku)


class ClusterSettings(Model):
    """The AKS cluster and how one gets into it."""

    resource_group: str | None = None
    """Name of the resource group; by default the project's and the stack's."""
    kubernetes_version: Text = versions().kubernetes.default
    """Minor version, or with a patch version: 1.35 or 1.35.4."""
    entra: bool = True
    """Log in with Microsoft Entra ID, with Azure RBAC inside the cluster."""
    local_accounts: bool = False
    """Allow the cluster's own admin certificate; the program then uses it and needs no kubelogin."""
    login: Literal["azurecli", "workloadidentity", "spn", "msi"] = "azurecli"
    """How kubelogin gets its token when local accounts are off."""
    admin_group_object_ids: tuple[ObjectId, ...] = ()
    deployer_object_id: ObjectId | None = None
    """Who deploys and so gets the role of cluster admin; by default the identity that Pulumi is logged in as."""
    deployer_type: PrincipalType | None = None
    """What that is; by default a user where `login` is azurecli, and a service principal elsewhere."""
    tier: Literal["Free", "Standard", "Premium"] = "Standard"
    system_pool: SystemPool = SystemPool()


class Toggle(Model):
    """Something of ours on the nodes."""

    enabled: bool = True


class Operator(Model):
    """One Helm release; `values` are merged last, over the program's own."""

    enabled: bool = True
    values: dict[str, Any] = {}


class NetworkOperator(Operator):
    """NVIDIA Network Operator: OFED drivers and the RDMA device plugin."""

    rdma_resource: Annotated[
        str,
        StringConstraints(pattern=r"^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$"),
        Field(description="at most 63 lower-case letters, digits, '-', '_' and '.', a letter or digit at both ends"),
    ] = "mlnxnics"
    """The extended resource's name, after `nvidia.com/`."""
    ofed_version: Annotated[Tag | None, EMPTY_IS_UNSET] = None
    """Tag of the OFED driver's image, without operating system and architecture; by default the pinned one."""

    @property
    def resource_name(self) -> str:
        """What pods request, e.g. nvidia.com/mlnxnics."""
        return f"nvidia.com/{self.rdma_resource}"


DriverUpgrades = Literal["manual", "when-idle"]
"""Who restarts drivers whose version or configuration has changed: nobody by itself, or NVIDIA's operators, node by
node, each once all pods of its node have ended.
"""


class Operators(Model):
    """What is installed in the cluster."""

    driver_upgrades: DriverUpgrades = "manual"
    """Of OFED and of the GPU driver."""
    node_feature_discovery: Operator = Operator()
    network_operator: NetworkOperator = NetworkOperator()
    gpu_operator: Operator = Operator()
    volcano: Operator = Operator()
    blob_csi_driver: Operator = Operator()
    """Its chart; installed only with `storage.driver: chart` and a container."""
    local_nvme_scratch: Toggle = Toggle()
    """Makes one file system of all local NVMe disks, on pools that have `localNvmeScratch`."""
    node_labeler: Toggle = Toggle()
    """Labels GPU nodes with what identifies them to Azure's support."""


class Charts(Model):
    """Where charts come from."""

    source: Annotated[str | None, EMPTY_IS_UNSET] = None
    """An OCI registry (oci://...) or a folder with one unpacked chart per folder; by default each chart's own place."""


class Images(Model):
    """Where images come from."""

    registry: Annotated[str | None, EMPTY_IS_UNSET] = None
    """A registry that mirrors all of them, without a scheme; by default each image's own."""


class StackFile(Model):
    """What a user may set: the keys under the project's name in a stack file, as Pulumi.yaml describes them."""

    location: Region = "eastus"
    vm_sku: GpuSku | None = None
    node_count: NodeCount = 2
    workloads: tuple[str, ...] = ()
    workload_options: dict[str, dict[str, Any]] = {}
    model_size: Annotated[str | None, EMPTY_IS_UNSET] = None
    """What Metaseq trains: `workloadOptions.metaseq.modelSize`, at hand."""
    platform_stack: Annotated[str | None, EMPTY_IS_UNSET] = None
    """The stack whose platform to run on, in place of one of its own: a name, or organization/project/name."""
    cluster: ClusterSettings = ClusterSettings()
    pools: dict[str, PoolSettings] = {}
    operators: Operators = Operators()
    charts: Charts = Charts()
    images: Images = Images()
    registry: RegistrySettings = RegistrySettings()
    storage: StorageSettings = StorageSettings()

    def gpu_pools(self) -> dict[str, PoolSettings]:
        """All GPU pools by key: `pools`, or else the one that `vmSku` and `nodeCount` describe."""
        if self.pools or self.vm_sku is None:
            return dict(sorted(self.pools.items()))
        return {DEFAULT_POOL: PoolSettings(vm_sku=self.vm_sku, count=self.node_count)}


SHARED = ("vm_sku", "node_count", "pools", "operators", "storage", "images")
"""Settings of a platform that hold for workloads of other stacks too."""


class Lending(Model):
    """The output `platform`: what a platform tells stacks that run on it, nothing of it secret."""

    settings: StackFile
    """The shared ones."""
    login_server: str
    """Host of the registry with the images of `docker/`."""
    containers: dict[str, dict[str, Any]] = {}
    """Blob containers by name, as components/container_access.py describes them."""


@dataclass(frozen=True)
class Lender:
    """A platform of another stack."""

    stack: StackName
    lending: Lending

    def furnish(self, lodger: StackFile) -> StackFile:
        """The lodger's settings with the platform's among them, as the rules for workloads read them."""
        shared = {name for name in SHARED if name != "images" or name not in lodger.model_fields_set}
        theirs = self.lending.settings
        values = dict(lodger) | {name: getattr(theirs, name) for name in shared}
        return StackFile.model_construct((lodger.model_fields_set - shared) | theirs.model_fields_set, **values)


@dataclass(frozen=True)
class Placement:
    """A workload of the stack, with its checked options and the pool that it runs on."""

    workload: str
    name: str
    """Of its job: the workload's, and the pool's key behind it where it runs on every pool."""
    options: WorkloadOptions
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
    """All settings of one stack, checked. Made by `config.loader` only."""

    project: str
    stack: str
    placements: dict[str, Placement] = {}
    """What runs where, by the names of the jobs, in the order of `workloads`."""
    lender: Lender | None = None
    """The platform that `platformStack` names; its `SHARED` settings are then these settings' too."""

    @property
    def names(self) -> Names:
        """Names in Azure."""
        return Names(self.project, self.stack, self.cluster.resource_group)

    def users(self, container: str) -> list[str]:
        """The stack's workloads that mount a blob container or fill it."""
        return [name for name, placement in self.placements.items() if container in placement.options.containers]
