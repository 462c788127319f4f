"""Capacity that pools take from reservations: looked at before anything is declared.

AKS makes a pool with a warning only where its group has nothing for it (its page on capacity reservation groups), and
nobody reads that in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import compute

from components.existing import if_there
from config.problems.errors import Problem
from config.problems.fixes import remove_command, say
from config.schema.models import Settings
from config.schema.pools import PoolSettings
from config.schema.resource_ids import ResourceName

KEY = "capacityReservationGroup"


@dataclass(frozen=True)
class Group:
    """A capacity reservation group."""

    location: str
    reserved: Mapping[str, int]
    """Machines by VM size."""


def check_reservations(settings: Settings) -> None:
    """Raises pulumi.RunError for groups that cannot serve their pools; warns of those that hold too little."""
    refusals: list[str] = []
    for key, pool in settings.gpu_pools().items():
        if pool.capacity_reservation_group:
            group = _group(pool.capacity_reservation_group)
            refusals += [problem.text(settings.stack) for problem in problems(settings, key, pool, group)]
            if group and (short := shortage(key, pool, group)):
                pulumi.log.warn(short)
    if refusals:
        raise pulumi.RunError("\n".join(refusals))


def problems(settings: Settings, key: str, pool: PoolSettings, group: Group | None) -> Iterator[Problem]:
    """Why a pool cannot take its nodes from a group; None is one that Azure does not have."""
    path = ("pools", key, KEY)
    if group is None:
        yield Problem(
            path,
            "is a group that Azure does not have",
            "one of `az capacity reservation group list`",
            remove_command(path),
        )
    elif group.location != settings.location:
        what = f"is a group in {group.location}, and the cluster is in {settings.location}"
        yield Problem(path, what, f"a group in {settings.location}", remove_command(path))
    elif pool.vm_sku not in group.reserved:
        what = f"is a group that reserves {', '.join(sorted(group.reserved)) or 'nothing'}, not {pool.vm_sku}"
        how = "az capacity reservation create --sku " + pool.vm_sku
        yield Problem(path, what, f"a group with a reservation of {pool.vm_sku}", say(how))


def shortage(key: str, pool: PoolSettings, group: Group) -> str:
    """Of nodes that the group does not hold. Which pools share it is not looked at."""
    reserved = group.reserved.get(pool.vm_sku, 0)
    if not reserved or pool.max_nodes <= reserved:
        return ""
    return (
        f"pools.{key}: {reserved} nodes of {pool.vm_sku} are reserved, and the pool may have {pool.max_nodes}. The "
        "others come as without a reservation: if there is capacity, and within the quota."
    )


def _group(resource_id: str) -> Group | None:
    place = ResourceName.of(resource_id)
    names = {"capacity_reservation_group_name": place.name, "resource_group_name": place.group}
    found = if_there(lambda: compute.get_capacity_reservation_group(**names))
    if found is None:
        return None
    members = [
        compute.get_capacity_reservation(capacity_reservation_name=member.id.rpartition("/")[2], **names)
        for member in found.capacity_reservations
    ]
    reserved = {str(member.sku.name): int(member.sku.capacity or 0) for member in members}
    return Group(found.location.replace(" ", "").lower(), reserved)
