"""GPU node pools. Each pool of the settings is one AgentPool: one scale set and one InfiniBand fabric."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_azure_native import containerservice

from components._base import Component
from components.azure.cluster import Cluster
from components.context import GpuPool
from config.schema.models import Settings
from config.schema.pools import PoolSettings, agent_pool_name, node_labels, node_taints

# Creating a pool of ND nodes takes 6 to 15 minutes, AllocationFailed comes late, and an upgrade goes node by node.
_TIMEOUTS = pulumi.CustomTimeouts(create="60m", update="2h", delete="60m")

# The provider would update these in place, and ARM would answer 400 PropertyChangeNotAllowed.
_IMMUTABLE = [
    "gpuProfile.driver",
    "maxPods",
    "osDiskSizeGB",
    "osDiskType",
    "osType",
    "scaleSetEvictionPolicy",
    "scaleSetPriority",
    "spotMaxPrice",
    "type",
]

# A new pool has the minimum `count`, which the autoscaler changes. Later updates send the count in Pulumi's state. AKS
# ignores it in an autoscaled pool, even if it is out of bounds (Azure/AKS, releases 2019-10-28 and 2019-12-02).
_AUTOSCALED = ["count"]
CONFIG_MAP, NAMESPACE = "cluster-autoscaler-priority-expander", "kube-system"
"""The name and namespace of the ConfigMap (AKS's page articles/aks/cluster-autoscaler-overview.md)."""


class NodePools(Component):
    """All GPU pools. ARM names depend on immutable properties, so a pool and its replacement can exist together."""

    pools: dict[str, GpuPool]
    resources: list[pulumi.Resource]

    def __init__(
        self,
        name: str,
        cluster: Cluster,
        settings: Settings,
        *,
        there: Collection[str] = (),
        after: Sequence[pulumi.Resource] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        self._there = there
        self._cluster = cluster
        self._after = after
        self._version = settings.cluster.kubernetes_version
        self._rdma_resource = settings.rdma_resource
        self.resources = [self._pool(key, pool) for key, pool in settings.gpu_pools().items()]
        self.pools = gpu_pools(settings)
        self.register_outputs({"pools": {key: pool.agent_pool for key, pool in self.pools.items()}})

    def _pool(self, key: str, pool: PoolSettings) -> containerservice.AgentPool:
        name = agent_pool_name(key, pool)
        return containerservice.AgentPool(
            f"pool-{key}",
            resource_group_name=self._cluster.resource_group,
            resource_name_=self._cluster.name,
            agent_pool_name=name,
            mode="User",
            type="VirtualMachineScaleSets",
            # Without a version, nodes would stay at their first one when the control plane is upgraded.
            orchestrator_version=self._version,
            vm_size=pool.vm_sku,
            count=pool.min_nodes,
            os_type="Linux",
            os_sku="Ubuntu",
            os_disk_size_gb=pool.disk.gb,
            os_disk_type=pool.disk.type,
            capacity_reservation_group_id=pool.capacity_reservation_group,
            # The GPU operator installs the driver, not AKS.
            gpu_profile=containerservice.GPUProfileArgs(driver="None"),
            max_pods=pool.max_pods,
            node_labels=node_labels(key, pool),
            node_taints=list(node_taints(pool)),
            vnet_subnet_id=self._cluster.subnet,
            **_scaling(pool, self._rdma_resource),
            **_priority(pool),
            **_upgrades(pool),
            opts=self.child(
                custom_timeouts=_TIMEOUTS,
                replace_on_changes=_IMMUTABLE,
                ignore_changes=_AUTOSCALED if pool.autoscale and name in self._there else None,
                depends_on=self._after,
                delete_before_replace=pool.replace == "delete-first",
            ),
        )


def gpu_pools(settings: Settings) -> dict[str, GpuPool]:
    scheduler, scratch = settings.operators.scheduler, settings.scratch_folder
    return {key: gpu_pool(key, pool, scheduler, scratch) for key, pool in settings.gpu_pools().items()}


def gpu_pool(key: str, pool: PoolSettings, scheduler: str, scratch_folder: str | None) -> GpuPool:
    return GpuPool(
        agent_pool=agent_pool_name(key, pool),
        sku=pool.sku,
        taints=node_taints(pool),
        min_nodes=pool.min_nodes,
        max_nodes=pool.max_nodes,
        shares=pool.shares,
        scheduler=scheduler,
        scratch=scratch_folder if pool.scratch else None,
    )


def _scaling(pool: PoolSettings, rdma_resource: str) -> dict[str, Any]:
    if pool.autoscale is None:
        return {"enable_auto_scaling": False}
    bounds = {"enable_auto_scaling": True, "min_count": pool.autoscale.min, "max_count": pool.autoscale.max}
    if pool.sku.infiniband is None:
        return bounds
    # For a pool without nodes, the autoscaler derives the number of GPUs from the VM size, and the number of other
    # devices from the scale set's tags (its README for Azure). AKS copies the pool's tags to the scale set.
    offer = f"k8s.io_cluster-autoscaler_node-template_resources_{rdma_resource.replace('/', '_')}"
    return {**bounds, "tags": {offer: str(pool.sku.infiniband.hcas)}}


def _upgrades(pool: PoolSettings) -> dict[str, Any]:
    """Returns settings for upgrades without an extra node in pools with InfiniBand. Otherwise returns {}.

    By default, AKS adds a node first, which needs quota (AKS's page on rolling upgrades) and capacity. Spot pools do
    not accept these settings (azurerm#19355, #31129).
    """
    if pool.spot or pool.sku.infiniband is None:
        return {}
    return {"upgrade_settings": containerservice.AgentPoolUpgradeSettingsArgs(max_surge="0", max_unavailable="1")}


def _priority(pool: PoolSettings) -> dict[str, Any]:
    if not pool.spot:
        return {"scale_set_priority": "Regular"}
    return {
        "scale_set_priority": "Spot",
        "scale_set_eviction_policy": "Delete",
        "spot_max_price": pool.spot_max_price,
    }


class AutoscalerPriorities(Component):
    """The ConfigMap that the autoscaler's expander `priority` reads before each scale-up."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        hooks: pulumi.ResourceHookBinding | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        kubernetes.core.v1.ConfigMap(
            name,
            metadata={"name": CONFIG_MAP, "namespace": NAMESPACE},
            data={"priorities": priorities(settings.gpu_pools())},
            opts=self.child(hooks=hooks),
        )
        self.register_outputs({})


def priorities(pools: Mapping[str, PoolSettings]) -> str:
    """Returns YAML that maps priorities to patterns for their pools' scale sets. The highest priority wins.

    Every autoscaled pool has a pattern. A pool without one would not grow while a pool with a pattern can grow
    (cluster-autoscaler/expander/priority/priority.go, BestOption). AKS names scale sets aks-<pool>-<digits>-vmss (node
    names in its page create-node-pools.md); a pool's name has no hyphen.
    """
    found: dict[int, list[str]] = {}
    for key, pool in pools.items():
        if pool.autoscale:
            found.setdefault(pool.autoscale.rank, []).append(f".*aks-{agent_pool_name(key, pool)}-.*")
    lines = ([f"{rank}:", *(f"  - {pattern}" for pattern in found[rank])] for rank in sorted(found))
    return "".join(f"{line}\n" for block in lines for line in block)
