"""The AKS cluster's own settings, and those of its system pool.

How nodes get patches, and when; how the cluster autoscaler decides: one profile for all pools that it scales.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints, ValidationInfo, field_validator

from config.data.allocatable import MAX_PODS, MIN_SYSTEM_PODS
from config.data.skus import VmSku, sku
from config.data.versions import versions
from config.schema.base import AS_TEXT, PLAIN_DIGITS, Model, Text, may_be, protects, stated, unfit
from config.schema.ip_ranges import IpRanges
from config.schema.pools import MAX_NODES
from config.schema.resource_ids import ObjectId, UserAssignedIdentityId

NodeOsChannel = Literal["None", "Unmanaged", "SecurityPatch", "NodeImage"]
ROLLING: tuple[NodeOsChannel, ...] = ("SecurityPatch", "NodeImage")
"""Channels by which AKS rolls nodes to new images, in its window if it has one."""
MAX_CLUSTER_NODES = 5000
"""Nodes of a cluster at most (https://learn.microsoft.com/azure/aks/quotas-skus-regions)."""
AKS_UNREADY_NODES = 3
"""AKS's default of `ok-total-unready-count`."""
Minutes = Annotated[int, Field(ge=0, le=1440), PLAIN_DIGITS]
SYSTEM_DISK_GB, SYSTEM_DISK_TYPE = 128, "Managed"
"""The OS disk of the system pool's nodes."""

PLACEMENT_GROUP_NODES = 100
"""https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-placement-groups; AKS has set
singlePlacementGroup for sizes with RDMA since 2022 (Azure/AKS, CHANGELOG.md, release 2022-03-20).
"""

PrincipalType = Literal["User", "ServicePrincipal", "Group"]
"""What an object id is of, as role assignments call it; managed identities are service principals."""


_TIME = r"^([01]\d|2[0-3]):[0-5]\d$"
_OFFSET = r"^[+-](0\d|1[0-4]):[0-5]\d$"


def _clock(form: str) -> BeforeValidator:
    """Refuses `9:00`, `14.30`, `22h`, `+1` and `+0530`, and suggests the same time in the form that AKS takes."""

    def read(value: Any) -> Any:
        found = re.fullmatch(r"([+-]?)(\d{1,2})(?:h|[:.](\d\d)(?::00)?)?|([+-])(\d\d)(\d\d)", str(value))
        if not found:
            return value
        better = f"{found[1] or found[4] or ''}{found[2] or found[5]:0>2}:{found[3] or found[6] or '00'}"
        if better != value:
            raise unfit(f"is {value!r}", better if re.match(form, better) else None)
        return value

    return BeforeValidator(read)


class MaintenanceWindow(Model):
    """When AKS may roll nodes to new images, each week."""

    model_config = ConfigDict(json_schema_extra={"text_is": "day"})

    day: Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"] = "Sunday"
    """Its day of the week."""
    start_time: Annotated[
        str,
        StringConstraints(pattern=_TIME),
        AS_TEXT,
        _clock(_TIME),
        may_be('a time of the day, as in "02:00"'),
    ] = "02:00"
    """When it opens."""
    hours: Annotated[int, Field(ge=4, le=24), PLAIN_DIGITS] = 4
    """For how long, 4 to 24 hours."""
    utc_offset: Annotated[
        str,
        StringConstraints(pattern=_OFFSET),
        _clock(_OFFSET),
        may_be('an offset from UTC, as in "+05:30" or "-07:00"'),
    ] = "+00:00"
    """Of its time zone."""


def reimages(before: str, after: str) -> bool:
    """Whether AKS makes all nodes anew for another channel ("Node OS channel changes that cause a reimage", AKS's page
    on node OS images).
    """
    return before != after and (after == "Unmanaged" or (before, after) == ("Unmanaged", "None"))


class AutoscalerSettings(Model):
    """The autoscaler's profile, for all pools with `autoscale`.

    The defaults are AKS's, except where nodes that build drivers need more time: the autoscaler counts a GPU node as
    unready until it offers GPUs. AKS's page on the cluster autoscaler explains all properties of the profile.
    """

    expander: Literal["random", "least-waste", "most-pods", "priority"] = "random"
    """Which pool grows where several would do: `random`, `least-waste`, `most-pods`, or `priority`: that of the pools'
    `autoscale.priority`.
    """
    unneeded_minutes: Minutes = 10
    """How long a node is not needed before it goes."""
    unready_minutes: Minutes = 60
    """How long a node is unready before it is deleted; the first 15 minutes of a new node do not count. A GPU node is
    unready until it offers GPUs; AKS's default of 20 may delete a node whose drivers are almost built.
    """
    unready_nodes: Annotated[int | None, Field(ge=0, le=MAX_CLUSTER_NODES), PLAIN_DIGITS] = None
    """How many nodes may be unready before the autoscaler pauses; by default as many as the GPU pools have at most,
    since all of them may build drivers at once.
    """
    unready_percent: Annotated[int, Field(ge=0, le=100), PLAIN_DIGITS] = 45
    """More unready nodes than `unreadyNodes` are allowed up to this percentage of the cluster's nodes."""
    provision_minutes: Minutes = 30
    """How long a new node may take until it offers its GPUs. After that, the autoscaler gives up the scale-up and does
    not grow the pool for 5 to 30 minutes; AKS's default is 15.
    """

    def allowed_unready(self, gpu_nodes: int) -> int:
        """Returns how many nodes may be unready in a cluster whose pools have at most `gpu_nodes` GPU nodes."""
        return max(gpu_nodes, AKS_UNREADY_NODES) if self.unready_nodes is None else self.unready_nodes


SystemNodes = Annotated[int, Field(ge=1, le=MAX_NODES), PLAIN_DIGITS]


class SystemPool(Model):
    """The pool that AKS and the operators' controllers run on."""

    vm_sku: str = "Standard_D8ads_v5"
    """VM size of the system pool, 4 vCPUs or more; with `cluster.tier` `Free` by default `Standard_D4ads_v5`. Unless
    set, a cluster that is up keeps its own. Azure refuses to change it: previews say so, with the commands that put
    another pool in its place.

    PropertyChangeNotAllowed; components/preflight/existing.py tells the way.
    """
    count: SystemNodes = 3
    """Its nodes; with `cluster.tier` `Free` by default 2. Unless set, a cluster that is up keeps its own number."""
    max_pods: Annotated[int | None, Field(ge=MIN_SYSTEM_PODS, le=MAX_PODS), PLAIN_DIGITS] = None
    """Pods that a node may have; by default 250. Azure refuses to change it, as the VM size."""
    taint: Annotated[bool, protects([True, False])] = False
    """Keep workloads off it.

    By CriticalAddonsOnly=true:NoSchedule.
    """

    @property
    def sku(self) -> VmSku:
        """Its hardware."""
        return sku(self.vm_sku)


class FreeSystemPool(SystemPool):
    """The system pool of a cluster with `cluster.tier` `Free`, which has no uptime guarantee."""

    vm_sku: str = "Standard_D4ads_v5"
    count: SystemNodes = 2


class ClusterSettings(Model):
    """The AKS cluster and how one gets into it."""

    resource_group: str | None = None
    """Its name; by default the cluster's; refused for a platform that is up in another."""
    kubernetes_version: Text = versions().kubernetes.default
    """Minor version, or with a patch; another one upgrades the control plane, then the GPU pools node by node (with
    InfiniBand in place, others with a node more, for which there must be quota); the system pool's command is told
    after it.
    """
    entra: Annotated[bool, protects([True, False])] = True
    """Log in with Microsoft Entra ID, with Azure RBAC inside the cluster."""
    local_accounts: Annotated[bool, protects([False, True])] = False
    """Allow the cluster's own admin certificate, and use it instead of kubelogin."""
    login: Literal["azurecli", "workloadidentity", "spn", "msi"] = "azurecli"
    """How kubelogin gets its token: `azurecli`, `workloadidentity`, `spn`, `msi`."""
    admin_group_object_ids: Annotated[tuple[ObjectId, ...], protects("stated")] = ()
    """Entra groups of cluster admins; each gets the role by which it asks for a kubeconfig, too."""
    deployer_object_id: Annotated[ObjectId | None, protects("stated")] = None
    """Who gets the role of cluster admin; by default who deploys."""
    deployer_type: PrincipalType | None = None
    """What that is: `User`, `ServicePrincipal` (managed identities too) or `Group`; by default what the login of who
    deploys says, and a user if `deployerObjectId` names somebody else.
    """
    identity: UserAssignedIdentityId | None = None
    """A user-assigned identity of yours for the cluster; by default Azure makes one for it alone (system-assigned), and
    with `network` the stack does (user-assigned).
    """
    authorized_ip_ranges: Annotated[IpRanges, protects("ranges")] = ()
    """Public IPv4 ranges from which the API server may be reached, by default from anywhere; whoever runs pulumi, helm
    or kubectl must be in one, CI too; the cluster's nodes may by themselves, but not by a NAT gateway of yours
    (`network.id`), whose addresses belong there too. Unless set, a cluster that is up keeps its own.
    """
    node_os_channel: NodeOsChannel = "Unmanaged"
    """Who patches nodes: `Unmanaged` is Ubuntu's own nightly updates, with no new image under a job; by `SecurityPatch`
    and `NodeImage` AKS rolls images, in the window; `None` leaves it to you. Unless set, a cluster that is up keeps its
    own.
    """
    maintenance_window: Annotated[MaintenanceWindow | None, protects("stated")] = None
    """When AKS may roll images, each week; by default at any time."""
    tier: Literal["Free", "Standard", "Premium"] = "Standard"
    """`Free`, `Standard` or `Premium`, which comes with AKS's long-term support: another year for each version of
    Kubernetes ([which patches](drivers.md#kubernetes-versions)).
    """
    system_pool: Annotated[SystemPool, Field(validate_default=True)] = SystemPool()
    """The pool that AKS and the operators' controllers run on."""
    placement_group_limit: Annotated[
        int, Field(ge=PLACEMENT_GROUP_NODES, le=MAX_NODES), PLAIN_DIGITS, protects("limit")
    ] = PLACEMENT_GROUP_NODES
    """Nodes that a pool with InfiniBand may have. Azure's limit is 100 VMs in a scale set with a single placement
    group, which AKS makes for such pools. If Azure support has raised it for your subscription, set the new limit.
    """
    autoscaler: AutoscalerSettings = AutoscalerSettings()
    """The autoscaler's profile, for all pools with `autoscale`."""

    @field_validator("system_pool")
    @classmethod
    def _fit_the_tier(cls, pool: SystemPool, info: ValidationInfo) -> SystemPool:
        """Returns a system pool with the defaults of the tier.

        AKS recommends three nodes of 8 vCPUs (https://learn.microsoft.com/azure/aks/use-system-pools).
        """
        if info.data.get("tier") != "Free":  # pydantic validates in the order of the fields: `tier` stands before
            return pool
        return FreeSystemPool.model_validate(stated(pool), by_alias=False, by_name=True)

    @property
    def lts(self) -> bool:
        """Whether AKS supports the cluster's Kubernetes version for longer (long-term support)."""
        return self.tier == "Premium"
