"""Rejects another VM size or `maxPods` of an existing system pool, which Azure cannot change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pulumi
from pulumi_azure_native import containerservice

from components.azure.cluster import SYSTEM_POOL
from config.data.scheduling import SYSTEM_TAINT
from config.data.skus import catalogue
from config.problems.errors import lines
from config.problems.fixes import set_command
from config.schema.cluster import SYSTEM_DISK_GB, SYSTEM_DISK_TYPE, SystemPool
from config.schema.models import Settings

_NEXT_POOL = "systemnext"


def keep_system_pool(settings: Settings, cluster: containerservice.GetManagedClusterResult | None) -> Settings:
    wanted, has = settings.cluster.system_pool, _system_pool(cluster)
    kept = _kept(wanted, has)
    if has and (kept.vm_sku, kept.count) != (wanted.vm_sku, wanted.count):
        path = ("cluster", "systemPool")
        edits = (set_command((*path, "vmSku"), kept.vm_sku), set_command((*path, "count"), kept.count))
        keep = " && ".join(edit.text(settings.stack) for edit in edits)
        source = "" if settings.cluster.tier == "Free" else ", as AKS recommends"
        pulumi.log.warn(
            f"the system pool keeps its {kept.count} nodes of {kept.vm_sku}; new clusters get {wanted.count} nodes of "
            f"{wanted.vm_sku}{source}. To change the pool, set cluster.systemPool. To keep the pool without this "
            f"warning: {keep}"
        )
    return settings.model_copy(update={"cluster": settings.cluster.model_copy(update={"system_pool": kept})})


def _system_pool(cluster: containerservice.GetManagedClusterResult | None) -> Any:
    pools = (cluster.agent_pool_profiles if cluster else None) or ()
    return next((pool for pool in pools if pool.name == SYSTEM_POOL), None)


def _kept(wanted: SystemPool, has: Any) -> SystemPool:
    size = next((name for name in catalogue() if has and name.lower() == (has.vm_size or "").lower()), None)
    own = {"vm_sku": size, "count": has and has.count}
    return wanted.model_copy(
        update={name: value for name, value in own.items() if value and name not in wanted.model_fields_set}
    )


def system_pool_refusals(settings: Settings, cluster: containerservice.GetManagedClusterResult) -> Iterator[str]:
    names, has = settings.names, _system_pool(cluster)
    wanted = _kept(settings.cluster.system_pool, has)
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
    """Returns the error for a new `maxPods` if the current value `pods` is set, otherwise for a new VM size.

    `size` is the current VM size. `cluster` has the CLI options that name the cluster. `place` has the options for
    subnet and zones: either all pools have a subnet or none (Azure/AKS#2927). A pool's VM size and `maxPods` are fixed,
    but a system pool can be deleted once another exists (https://learn.microsoft.com/azure/aks/resize-node-pool,
    .../aks/use-system-pools).
    """
    key, value = ("maxPods", str(pods)) if pods else ("vmSku", size)
    what = f"cluster.systemPool.vmSku is {pool.vm_sku}, but the system pool has nodes of {size}."
    if pods:
        what = f"cluster.systemPool.maxPods is {pool.max_pods}, but nodes of the system pool have {pods}."
    add = f"az aks nodepool add {cluster} --mode System --node-vm-size {pool.vm_sku} --node-count {pool.count}{place}"
    disk = f"--os-sku Ubuntu --node-osdisk-type {SYSTEM_DISK_TYPE} --node-osdisk-size {SYSTEM_DISK_GB}"
    add += f" --max-pods {pool.max_pods}" if pool.max_pods else ""
    taint = f" --node-taints {SYSTEM_TAINT}" if pool.taint else ""
    return lines(
        what,
        "Azure cannot change that. Nothing was changed. Keep the existing values, and then `pulumi up` again:",
        f"    {set_command(('cluster', 'systemPool', key), value).text(stack)}",
        "Or replace the pool while no job runs, and then `pulumi up` again:",
        f"    {add} --name {_NEXT_POOL}",
        f"    az aks nodepool delete {cluster} --name {SYSTEM_POOL}",
        f"    {add} --name {SYSTEM_POOL} {disk}{taint}",
        f"    az aks nodepool delete {cluster} --name {_NEXT_POOL}",
    )
