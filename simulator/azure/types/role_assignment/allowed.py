"""What role assignments allow."""

from __future__ import annotations

from simulator.azure import faults
from simulator.azure.ids import ResourceId
from simulator.azure.world import World

TYPE = "Microsoft.Authorization/roleAssignments"


def allows(world: World, principal: str, action: str, scope: ResourceId) -> bool:
    """Whether a principal (its object id) may do `action`, a key of the subscription's `permissions`, on a resource.

    A role counts on the resource itself and on everything above it. Who is signed in owns the subscription.
    """
    roles = world.subscription.permissions[action]
    if principal == world.subscription.object_id and "Owner" in roles:
        return True
    return any(
        assignment.properties["principalId"] == principal
        and world.subscription.roles[assignment.properties["roleDefinitionId"].rpartition("/")[2]] in roles
        and f"{scope.key}/".startswith(f"{assignment.id.scope.lower()}/")
        and not faults.waits(world, assignment)
        for assignment in world.store.all(TYPE)
    )
