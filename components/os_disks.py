"""The OS disks of GPU pools that are up: each keeps its own, unless the settings say another.

AKS cannot change the disk of a pool ("You can't change the OS disk size after cluster or node pool creation", its page
on storage). So another disk is another pool in its place, and jobs there start again: no default is worth that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pulumi

from components.existing import Existing
from config.problems.fixes import Edit, Fix
from config.schema.models import Settings
from config.schema.os_disk import FORMER_DISK, OsDisk
from config.schema.pools import PoolSettings, agent_pool_name


def keep_disks(settings: Settings, existing: Existing) -> Settings:
    """The settings with each pool's disk said: its own, where it is up, and then told how to have the default's."""
    given = settings.gpu_pools()
    pools = {key: pool.with_disk(kept_disk(key, pool, existing)) for key, pool in given.items()}
    for key, pool in pools.items():
        if pool.disk != given[key].disk:
            pulumi.log.warn(_told(settings, key, has=pool.disk, default=given[key].disk))
    placements = {name: replace(at, pool=pools[at.pool_key]) for name, at in settings.placements.items()}
    return settings.with_pools(pools).model_copy(update={"placements": placements})


def kept_disk(key: str, pool: PoolSettings, existing: Existing) -> OsDisk:
    """The disk that a pool has, which its name in ARM tells; the default where it is not up."""
    if not pool.leaves_disk_open:
        return pool.disk
    fitting = (disk for disk in (pool.disk, *existing.os_disks, FORMER_DISK) if _is_asked(disk, pool))
    names = existing.node_counts
    return next((disk for disk in fitting if agent_pool_name(key, pool.with_disk(disk)) in names), pool.disk)


def _is_asked(disk: OsDisk, pool: PoolSettings) -> bool:
    return pool.os_disk_gb in (None, disk.gb) and pool.os_disk_type in (None, disk.type)


def _told(settings: Settings, key: str, has: OsDisk, default: OsDisk) -> str:
    change, keep = (Fix(tuple(disk_edits(settings, key, disk))).text(settings.stack) for disk in (default, has))
    sooner = ", from which images start sooner" if default.type == "Ephemeral" else ""
    return (
        f"the nodes of pool {key} have OS disks of {has}, which stay; new pools get {default}{sooner}. For that "
        f"another pool takes its place, and its jobs start again: {change} && "
        f"pulumi up -s {settings.stack}; or keep it: {keep}"
    )


def disk_edits(settings: Settings, key: str, disk: OsDisk) -> Iterator[Edit]:
    """What says a pool's disk. The pool of `vmSku` and `nodeCount` has no key for it before it is one of `pools`."""
    path = ("pools", key)
    count, usual = settings.node_count, type(settings).model_fields["node_count"].default
    if settings.vm_sku is not None:
        yield from (Edit((*path, "vmSku"), settings.vm_sku), Edit((*path, "count"), count), Edit(("vmSku",)))
        if count != usual:  # as Pulumi.yaml has it
            yield Edit(("nodeCount",))
    yield Edit((*path, "osDiskGb"), disk.gb)
    yield Edit((*path, "osDiskType"), disk.type)
