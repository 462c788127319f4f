"""Refuses another VM size, or other `maxPods`, of a system pool that is up: Azure changes neither."""

from __future__ import annotations

from collections.abc import Iterator

from pulumi_azure_native import containerservice

from components.cluster import SYSTEM_POOL
from config.facts.scheduling import SYSTEM_TAINT
from config.problems.fixes import set_command
from config.schema.cluster import SYSTEM_DISK_GB, SYSTEM_DISK_TYPE, SystemPool
from config.schema.models import Settings

_NEXT_POOL = "systemnext"


def system_pool_refusals(settings: Settings, cluster: containerservice.GetManagedClusterResult) -> Iterator[str]:
    """Yields the error if the settings ask for another system pool than the cluster has."""
    names, wanted = settings.names, settings.cluster.system_pool
    has = next((pool for pool in cluster.agent_pool_profiles or () if pool.name == SYSTEM_POOL), None)
    size, pods = (has.vm_size or "", has.max_pods) if has else ("", None)
    where = f"-g {names.resource_group} --cluster-name {names.cluster}"
    place = f" --vnet-subnet-id {has.vnet_subnet_id}" if has and has.vnet_subnet_id else ""
    place += f" --zones {' '.join(has.availability_zones)}" if has and has.availability_zones else ""
    if size and size.lower() != wanted.vm_sku.lower():
        yield system_pool_refusal(wanted, size, settings.stack, where, place=place)
    elif pods and wanted.max_pods and pods != wanted.max_pods:
        yield system_pool_refusal(wanted, size, settings.stack, where, pods, place)


def system_pool_refusal(
    pool: SystemPool, size: str, stack: str, cluster: str, pods: int | None = None, place: str = ""
) -> str:
    """Returns why a system pool of `size` cannot get another VM size, or other `maxPods` than the `pods` that it has.

    `cluster` names the cluster to Azure's CLI, `place` its subnet and zones: either all pools have a subnet or none
    (Azure/AKS#2927). A pool's VM size and pods are fixed, and a system pool can be deleted once another exists
    (https://learn.microsoft.com/azure/aks/resize-node-pool, .../aks/use-system-pools).
    """
    key, value = ("maxPods", str(pods)) if pods else ("vmSku", size)
    what = f"cluster.systemPool.vmSku is {pool.vm_sku}, but the system pool has nodes of {size}."
    if pods:
        what = f"cluster.systemPool.maxPods is {pool.max_pods}, but nodes of the system pool have {pods}."
    add = f"az aks nodepool add {cluster} --mode System --node-vm-size {pool.vm_sku} --node-count {pool.count}{place}"
    disk = f"--os-sku Ubuntu --node-osdisk-type {SYSTEM_DISK_TYPE} --node-osdisk-size {SYSTEM_DISK_GB}"
    add += f" --max-pods {pool.max_pods}" if pool.max_pods else ""
    taint = f" --node-taints {SYSTEM_TAINT}" if pool.taint else ""
    return "\n".join(
        [
            what,
            "Azure cannot change that. Nothing was changed. Keep them, and then `pulumi up` again:",
            f"    {set_command(('cluster', 'systemPool', key), value).text(stack)}",
            "Or put another pool in its place, while no job runs, and then `pulumi up` again:",
            f"    {add} --name {_NEXT_POOL}",
            f"    az aks nodepool delete {cluster} --name {SYSTEM_POOL}",
            f"    {add} --name {SYSTEM_POOL} {disk}{taint}",
            f"    az aks nodepool delete {cluster} --name {_NEXT_POOL}",
        ]
    )
