"""Settings of the AKS cluster, its system pool, node image updates and cluster autoscaler."""

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
MAX_CLUSTER_NODES = 5000
"""The maximum number of nodes in a cluster (https://learn.microsoft.com/azure/aks/quotas-skus-regions)."""
AKS_UNREADY_NODES = 3
"""AKS's default of `ok-total-unready-count`."""
Minutes = Annotated[int, Field(ge=0, le=1440), PLAIN_DIGITS]
SYSTEM_DISK_GB, SYSTEM_DISK_TYPE = 128, "Managed"

PLACEMENT_GROUP_NODES = 100
"""The maximum number of VMs in a single placement group. AKS uses one for sizes with RDMA (Azure/AKS, CHANGELOG.md,
2022-03-20; https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-placement-groups).
"""

PrincipalType = Literal["User", "ServicePrincipal", "Group"]
"""The kind of identity with an object id, in role assignments. Managed identities are service principals."""


_TIME = r"^([01]\d|2[0-3]):[0-5]\d$"
_OFFSET = r"^[+-](0\d|1[0-4]):[0-5]\d$"


def _clock(form: str) -> BeforeValidator:
    """Returns a validator that rejects `9:00`, `14.30`, `22h`, `+1` and `+0530`, and suggests AKS's format."""

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
    """The weekly window for AKS's rollouts of node images."""

    model_config = ConfigDict(json_schema_extra={"text_is": "day"})

    day: Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"] = "Sunday"
    """Day of the week."""
    start_time: Annotated[
        str,
        StringConstraints(pattern=_TIME),
        AS_TEXT,
        _clock(_TIME),
        may_be('a time of the day, as in "02:00"'),
    ] = "02:00"
    """Start time."""
    hours: Annotated[int, Field(ge=4, le=24), PLAIN_DIGITS] = 4
    """Length in hours, 4 to 24."""
    utc_offset: Annotated[
        str,
        StringConstraints(pattern=_OFFSET),
        _clock(_OFFSET),
        may_be('an offset from UTC, as in "+05:30" or "-07:00"'),
    ] = "+00:00"
    """Time zone, as an offset from UTC."""


def reimages(before: str, after: str) -> bool:
    """Returns whether a change of the channel makes AKS reimage all nodes (AKS's page on node OS images, "Node OS
    channel changes that cause a reimage").
    """
    return before != after and (after == "Unmanaged" or (before, after) == ("Unmanaged", "None"))


class AutoscalerSettings(Model):
    """The cluster autoscaler's profile, for all pools with `autoscale`.

    The defaults are AKS's, except where nodes that build drivers need more time: the autoscaler counts a GPU node as
    unready until it advertises GPUs. AKS's page on the cluster autoscaler explains all properties.
    """

    expander: Literal["random", "least-waste", "most-pods", "priority"] = "random"
    """Choice between several suitable pools: `random`, `least-waste`, `most-pods`, or `priority` (`autoscale.priority`
    of the pools).
    """
    unneeded_minutes: Minutes = 10
    """Minutes until an unneeded node is deleted."""
    unready_minutes: Minutes = 60
    """Minutes until an unready node is deleted; the first 15 minutes of a new node do not count. A GPU node is unready
    until it advertises GPUs; with AKS's default of 20, it may be deleted shortly before its drivers are ready.
    """
    unready_nodes: Annotated[int | None, Field(ge=0, le=MAX_CLUSTER_NODES), PLAIN_DIGITS] = None
    """Maximum number of unready nodes; above it, the autoscaler pauses. By default, the maximum number of GPU nodes,
    since all may build drivers at the same time.
    """
    unready_percent: Annotated[int, Field(ge=0, le=100), PLAIN_DIGITS] = 45
    """Percentage of the cluster's nodes that may be unready even if they are more than `unreadyNodes`."""
    provision_minutes: Minutes = 30
    """Minutes until a new node must advertise its GPUs. After that, the autoscaler aborts the scale-up and does not
    grow the pool for 5 to 30 minutes. AKS's default is 15.
    """

    def allowed_unready(self, gpu_nodes: int) -> int:
        return max(gpu_nodes, AKS_UNREADY_NODES) if self.unready_nodes is None else self.unready_nodes


SystemNodes = Annotated[int, Field(ge=1, le=MAX_NODES), PLAIN_DIGITS]


class SystemPool(Model):
    """The pool for AKS's system pods and the operators' controllers."""

    vm_sku: str = "Standard_D8ads_v5"
    """VM size of the system pool, 4 vCPUs or more; with `cluster.tier` `Free`, the default is `Standard_D4ads_v5`. If
    unset, an existing cluster keeps its size. Azure rejects a change; previews then print the commands that replace the
    pool.

    The error is PropertyChangeNotAllowed; components/preflight/existing.py prints the commands.
    """
    count: SystemNodes = 3
    """Number of nodes; with `cluster.tier` `Free`, the default is 2. If unset, an existing cluster keeps its number."""
    max_pods: Annotated[int | None, Field(ge=MIN_SYSTEM_PODS, le=MAX_PODS), PLAIN_DIGITS] = None
    """Maximum number of pods per node; by default 250. Azure rejects a change, as for the VM size."""
    taint: Annotated[bool, protects([True, False])] = False
    """Keep workloads off the system pool.

    Sets the taint CriticalAddonsOnly=true:NoSchedule.
    """

    @property
    def sku(self) -> VmSku:
        return sku(self.vm_sku)


class FreeSystemPool(SystemPool):
    """The system pool of a cluster with `cluster.tier` `Free`, which has no uptime guarantee."""

    vm_sku: str = "Standard_D4ads_v5"
    count: SystemNodes = 2


class ClusterSettings(Model):
    """The AKS cluster and access to it."""

    resource_group: str | None = None
    """Name of the resource group; by default the cluster's name. Cannot change once the platform is deployed."""
    kubernetes_version: Text = versions().kubernetes.default
    """Minor version or patch version. A change upgrades the control plane, then the GPU pools node by node: pools with
    InfiniBand in place, others with one extra node, which needs quota. The program then prints the command that
    upgrades the system pool.
    """
    entra: Annotated[bool, protects([True, False])] = True
    """Log in with Microsoft Entra ID, with Azure RBAC in the cluster."""
    local_accounts: Annotated[bool, protects([False, True])] = False
    """Allow the cluster's local admin certificate, and use it instead of kubelogin."""
    login: Literal["azurecli", "workloadidentity", "spn", "msi"] = "azurecli"
    """Login method of kubelogin: `azurecli`, `workloadidentity`, `spn`, `msi`."""
    admin_group_object_ids: Annotated[tuple[ObjectId, ...], protects("stated")] = ()
    """Entra groups of cluster admins. Each group also gets the role that it needs to request a kubeconfig."""
    deployer_object_id: Annotated[ObjectId | None, protects("stated")] = None
    """Object id that gets the cluster admin role; by default the deployer's object id."""
    deployer_type: PrincipalType | None = None
    """Type of `deployerObjectId`: `User`, `ServicePrincipal` (also for managed identities) or `Group`. By default, the
    type of the deployer's login, or `User` if `deployerObjectId` is not the deployer's.
    """
    identity: UserAssignedIdentityId | None = None
    """An existing user-assigned identity for the cluster. By default, Azure creates a system-assigned identity; with
    `network`, the stack creates a user-assigned identity.
    """
    authorized_ip_ranges: Annotated[IpRanges, protects("ranges")] = ()
    """Public IPv4 ranges that may reach the API server; by default any address. They must include all machines that run
    pulumi, helm or kubectl (CI, too). The cluster's nodes always have access, except through the NAT gateway of an
    existing network (`network.id`): add the gateway's addresses. If unset, an existing cluster keeps its ranges.
    """
    node_os_channel: NodeOsChannel = "Unmanaged"
    """Source of node patches: `Unmanaged` uses Ubuntu's nightly updates, and replaces no node image. With
    `SecurityPatch` and `NodeImage`, AKS replaces images in the maintenance window. `None` leaves patches to you. If
    unset, an existing cluster keeps its channel.
    """
    maintenance_window: Annotated[MaintenanceWindow | None, protects("stated")] = None
    """Weekly window for new node images; by default any time."""
    tier: Literal["Free", "Standard", "Premium"] = "Standard"
    """`Free`, `Standard` or `Premium`. `Premium` includes AKS's long-term support: one more year for each version of
    Kubernetes ([which patches](drivers.md#kubernetes-versions)).
    """
    system_pool: Annotated[SystemPool, Field(validate_default=True)] = SystemPool()
    """The pool for AKS's system pods and the operators' controllers."""
    placement_group_limit: Annotated[
        int, Field(ge=PLACEMENT_GROUP_NODES, le=MAX_NODES), PLAIN_DIGITS, protects("limit")
    ] = PLACEMENT_GROUP_NODES
    """Maximum number of nodes in a pool with InfiniBand. Azure's limit is 100 VMs in a scale set with a single
    placement group, which AKS creates for such pools. If Azure support has raised it for your subscription, set the new
    limit.
    """
    autoscaler: AutoscalerSettings = AutoscalerSettings()
    """The cluster autoscaler's profile, for all pools with `autoscale`."""

    @field_validator("system_pool")
    @classmethod
    def _fit_the_tier(cls, pool: SystemPool, info: ValidationInfo) -> SystemPool:
        """Returns the system pool with the tier's defaults.

        AKS recommends three nodes of 8 vCPUs (https://learn.microsoft.com/azure/aks/use-system-pools).
        """
        if info.data.get("tier") != "Free":  # pydantic validates in the order of the fields: `tier` comes first
            return pool
        return FreeSystemPool.model_validate(stated(pool), by_alias=False, by_name=True)

    @property
    def lts(self) -> bool:
        return self.tier == "Premium"
