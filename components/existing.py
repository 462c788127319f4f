"""What Azure has of a stack already and cannot change: read before anything is declared, and refused with the way out.

Pulumi would replace the storage account, with all data in it, and Azure would refuse another VM size of the system pool
in the middle of an update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import pulumi
from pulumi_azure_native import containerservice, storage

from components.cluster import OS_DISK_GB, OS_DISK_TYPE, SYSTEM_POOL
from components.subscription import subscription_id
from config.errors import set_command
from config.models import Settings, SystemPool
from config.scheduling import SYSTEM_TAINT

Found = TypeVar("Found")
_ABSENT = ("ResourceNotFound", "ResourceGroupNotFound")
"""Codes of ARM's 404, which the provider hands on (pulumi-azure-native, provider/pkg/provider/provider.go, Invoke)."""
_NEXT_POOL = "systemnext"


def check_existing(settings: Settings) -> None:
    """Raises pulumi.RunError, which the engine shows without a traceback, where settings ask for what cannot be had."""
    if why := "\n".join(_refusals(settings)):
        raise pulumi.RunError(why)


def _refusals(settings: Settings) -> Iterator[str]:
    names, group = settings.names, settings.names.resource_group
    if settings.storage.containers:
        account = settings.storage.full_name(names, subscription_id())
        has = _existing(lambda: storage.get_storage_account(account_name=account, resource_group_name=group))
        wanted = settings.storage.hierarchical_namespace
        if has and bool(has.is_hns_enabled) is not wanted:
            yield account_refusal(account, wanted=wanted)
    cluster = _existing(
        lambda: containerservice.get_managed_cluster(resource_name=names.cluster, resource_group_name=group)
    )
    pools = (cluster.agent_pool_profiles if cluster else None) or []
    size = next((pool.vm_size for pool in pools if pool.name == SYSTEM_POOL), None)
    if size and size.lower() != settings.cluster.system_pool.vm_sku.lower():
        yield system_pool_refusal(settings.cluster.system_pool, size, f"-g {group} --cluster-name {names.cluster}")


def _existing(ask: Callable[[], Found]) -> Found | None:
    """What Azure answers; None where there is no such resource, or no group for it, as before a stack's first `up`."""
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 - invokes raise bare exceptions
        if any(code in str(error) for code in _ABSENT):
            return None
        raise pulumi.RunError(str(error)) from None


def account_refusal(account: str, *, wanted: bool) -> str:
    """Of settings that want a hierarchical namespace of an account that has none, or the other way round."""
    has = "no hierarchical namespace" if wanted else "a hierarchical namespace"
    keep = set_command(("storage", "hierarchicalNamespace"), not wanted)
    return "\n".join(
        [
            f"the storage account {account} has {has}, and storage.hierarchicalNamespace is {str(wanted).lower()}.",
            "It would be replaced, with all data in it. Nothing was changed. Keep it, and then `pulumi up` again:",
            f"    {keep}",
        ]
    )


def system_pool_refusal(pool: SystemPool, size: str, cluster: str) -> str:
    """Of another VM size for the system pool, which has `size`; `cluster` is what names the cluster to Azure's CLI.

    A pool's VM size is fixed, and a system pool can go once there is another (Microsoft, "Resize node pools in AKS" and
    "Manage system node pools in AKS").
    """
    add = f"az aks nodepool add {cluster} --mode System --node-vm-size {pool.vm_sku} --node-count {pool.count}"
    disk = f"--os-sku Ubuntu --node-osdisk-type {OS_DISK_TYPE} --node-osdisk-size {OS_DISK_GB}"
    taint = f" --node-taints {SYSTEM_TAINT}" if pool.taint else ""
    return "\n".join(
        [
            f"cluster.systemPool.vmSku is {pool.vm_sku}, but the system pool has nodes of {size}.",
            "Azure cannot change that. Nothing was changed. Keep them, and then `pulumi up` again:",
            f"    {set_command(('cluster', 'systemPool', 'vmSku'), size)}",
            "Or put another pool in its place, while no job runs, and then `pulumi up` again:",
            f"    {add} --name {_NEXT_POOL}",
            f"    az aks nodepool delete {cluster} --name {SYSTEM_POOL}",
            f"    {add} --name {SYSTEM_POOL} {disk}{taint}",
            f"    az aks nodepool delete {cluster} --name {_NEXT_POOL}",
        ]
    )
