"""Capacity reservation groups (`Microsoft.Compute`): ARM's view, and their effect on pools and quota.

The groups are in `subscription.yaml`. Requests cannot create or change them.
"""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus

from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError, bad_request, not_found
from simulator.azure.ids import Path, ResourceId, parse_id
from simulator.azure.kind import envelope
from simulator.azure.store import Body, Record
from simulator.azure.subscription import Reservation, guid

TYPE = "Microsoft.Compute/capacityReservationGroups"
MEMBERS = f"{TYPE}/capacityReservations"
IDENTITIES = "Microsoft.ManagedIdentity/userAssignedIdentities"
_POOLS = "Microsoft.ContainerService/managedClusters/agentPools"
_KEY = "capacityReservationGroupID"


def is_about(world: World, path: Path) -> bool:
    if path.tail:
        return False
    if path.type.lower() == IDENTITIES.lower():
        return any(_short(path.id.text) in group.identities for group in world.subscription.reservations.values())
    return path.type.lower() in (TYPE.lower(), MEMBERS.lower())


def view(world: World, path: Path) -> Body:
    """Returns a group, a reservation (its name is the VM size), or an identity of a group. Raises ArmError (404)."""
    resource = path.id
    if resource.type.lower() == IDENTITIES.lower():
        ids = {"clientId": guid(resource.text, "client"), "principalId": guid(resource.text)}
        return envelope(Record(resource, {}), {"properties": ids | {"tenantId": world.subscription.tenant_id}})
    group = resource.parent if resource.is_child else resource
    found = _find(world, group.text)
    if found is None:
        raise not_found(TYPE, resource.names[0], resource.group)
    if group is resource:
        members = [{"id": group.child("capacityReservations", size).text} for size in found.machines]
        return envelope(
            Record(resource, {}), {"location": found.location, "properties": {"capacityReservations": members}}
        )
    if resource.name not in found.machines:
        raise not_found(MEMBERS, resource.name, resource.group)
    sku = {"name": resource.name, "capacity": found.machines[resource.name]}
    return envelope(Record(resource, {}), {"location": found.location, "sku": sku, "properties": {}})


def check(world: World, cluster: Record, properties: Body) -> None:
    """Raises ArmError if the pool cannot use its capacity reservation group.

    Rules: AKS's and Azure's pages on capacity reservations. Azure's texts are unknown.
    """
    group = properties.get(_KEY)
    if not group:
        return
    found, target = _find(world, group), f"properties.{_KEY}"
    if found is None:
        raise bad_request(f"The capacity reservation group '{group}' was not found.", target=target)
    identities = cluster.body.get("identity", {}).get("userAssignedIdentities", {})
    if not identities:
        raise bad_request("A capacity reservation group needs a cluster with a user-assigned identity.", target=target)
    if not any(_short(identity) in found.identities for identity in identities):
        message = (
            f"The identity '{next(iter(identities))}' does not have permission to perform action "
            f"'Microsoft.Compute/capacityReservationGroups/deploy/action' on the linked scope(s) '{group}'."
        )
        raise ArmError(HTTPStatus.FORBIDDEN, "LinkedAuthorizationFailed", message)
    size, location = properties["vmSize"], cluster.body["location"]
    if found.location != location or size not in found.machines:
        raise bad_request(f"The group '{group}' has no reservation of {size} in {location}.", target=target)


def reserved(world: World, location: str) -> Iterator[tuple[str, str, int]]:
    """Yields group, VM size and number of reserved machines. Unused machines count against the quota too."""
    for name, group in world.subscription.reservations.items():
        if group.location == location:
            yield from ((name, size, machines) for size, machines in group.machines.items())


def free(world: World, properties: Body, without: ResourceId | None) -> int:
    group = _find(world, properties.get(_KEY, ""))
    if group is None:
        return 0
    others = [pool.properties for pool in world.store.all(_POOLS) if pool.id != without]
    name, size = _short(properties[_KEY]), properties["vmSize"]
    given = sum(int(pool["count"]) for pool in others if pool["vmSize"] == size and _short(pool.get(_KEY, "")) == name)
    return max(group.machines.get(size, 0) - given, 0)


def taken(properties: Body, unused: dict[tuple[str, str], int]) -> int:
    """Returns how many of the pool's machines are reserved, and subtracts this number from `unused`."""
    key = (_short(properties.get(_KEY, "")), properties["vmSize"])
    machines = min(int(properties["count"]), unused.get(key, 0))
    if machines:
        unused[key] -= machines
    return machines


def _find(world: World, resource_id: str) -> Reservation | None:
    return world.subscription.reservations.get(_short(resource_id)) if resource_id else None


def _short(resource_id: str) -> str:
    if not resource_id:
        return ""
    resource = parse_id(resource_id)
    return f"{resource.group}/{resource.name}".lower()
