"""Capacity reservations of pools, checked before any resource is declared.

If a group has no reservation for a pool, AKS creates the pool and only warns (its page on capacity reservation groups),
which users notice too late.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import compute, managedidentity

from components.preflight.existing import get_if_exists
from config.problems.errors import Problem
from config.problems.fixes import remove_command, run
from config.schema.models import Settings
from config.schema.pools import PoolSettings
from config.schema.regions import region_name
from config.schema.resource_ids import ResourceName

KEY = "capacityReservationGroup"


@dataclass(frozen=True)
class Group:
    location: str
    reserved: Mapping[str, int]


Groups = Mapping[str, Group | None]
"""The capacity reservation groups by pool key. The value is None if the subscription does not have the group."""


def groups(settings: Settings) -> Groups:
    pools = settings.gpu_pools().items()
    return {key: _group(pool.capacity_reservation_group) for key, pool in pools if pool.capacity_reservation_group}


def reserved_nodes(settings: Settings, found: Groups) -> dict[str, int]:
    pools = settings.gpu_pools()
    return {key: group.reserved.get(pools[key].vm_sku, 0) for key, group in found.items() if group}


def check_reservations(settings: Settings, found: Groups) -> None:
    """Raises pulumi.RunError if a group cannot serve its pool, or if `cluster.identity` does not exist. Warns of groups
    that reserve too few nodes.
    """
    pools = settings.gpu_pools()
    wrong = [problem for key, group in found.items() for problem in problems(settings, key, pools[key], group)]
    wrong += _identity_problems(settings)
    for key, group in found.items():
        if group and (short := shortage(key, pools[key], group)):
            pulumi.log.warn(short)
    if wrong:
        raise pulumi.RunError("\n".join(problem.text(settings.stack) for problem in wrong))


def _identity_problems(settings: Settings) -> Iterator[Problem]:
    path = ("cluster", "identity")
    if settings.cluster.identity is None:
        return
    place = ResourceName.of(settings.cluster.identity)
    get = managedidentity.get_user_assigned_identity
    if get_if_exists(lambda: get(resource_name=place.name, resource_group_name=place.group)) is None:
        what = "is an identity that this subscription does not have"
        yield Problem(path, what, "an identity that `az identity list` lists", remove_command(path))


def problems(settings: Settings, key: str, pool: PoolSettings, group: Group | None) -> Iterator[Problem]:
    """Yields the reasons why a pool cannot take its nodes from a capacity reservation group.

    `group` is None if the subscription does not have that group.
    """
    path = ("pools", key, KEY)
    if group is None:
        yield Problem(
            path,
            "is a group that this subscription does not have",
            "a group that `az capacity reservation group list` lists",
            remove_command(path),
        )
    elif group.location != settings.location:
        what = f"is a group in {group.location}, but the cluster is in {settings.location}"
        yield Problem(path, what, f"a group in {settings.location}", remove_command(path))
    elif pool.vm_sku not in group.reserved:
        what = f"is a group that reserves {', '.join(sorted(group.reserved)) or 'nothing'}, not {pool.vm_sku}"
        place = ResourceName.of(str(pool.capacity_reservation_group))
        names = f"--resource-group {place.group} --capacity-reservation-group {place.name} --name {pool.vm_sku}"
        how = f"--location {group.location} --sku {pool.vm_sku} --capacity {pool.max_nodes}"
        command = run(f"az capacity reservation create {names} {how}")
        yield Problem(path, what, f"a group with a reservation of {pool.vm_sku}", command)


def shortage(key: str, pool: PoolSettings, group: Group) -> str:
    """Returns a warning if the group reserves fewer nodes than the pool may have, else an empty string."""
    reserved = group.reserved.get(pool.vm_sku, 0)
    if not reserved or pool.max_nodes <= reserved:
        return ""
    return (
        f"pools.{key}: only {reserved} nodes of {pool.vm_sku} are reserved, but the pool may have {pool.max_nodes}. "
        "The other nodes need free capacity and quota."
    )


def _group(resource_id: str) -> Group | None:
    place = ResourceName.of(resource_id)
    names = {"capacity_reservation_group_name": place.name, "resource_group_name": place.group}
    found = get_if_exists(lambda: compute.get_capacity_reservation_group(**names))
    if found is None:
        return None
    members = [
        compute.get_capacity_reservation(capacity_reservation_name=member.id.rpartition("/")[2], **names)
        for member in found.capacity_reservations
    ]
    reserved = {str(member.sku.name): int(member.sku.capacity or 0) for member in members}
    return Group(region_name(found.location), reserved)
