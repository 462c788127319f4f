"""What role assignments allow."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from simulator.azure import faults
from simulator.azure.arm_world import World
from simulator.azure.ids import ResourceId

TYPE = "Microsoft.Authorization/roleAssignments"


def allows(world: World, principal: str, action: str, scope: ResourceId) -> bool:
    """Whether a principal (its object id) may do `action`, a key of the subscription's `permissions`, on a resource.

    Who is signed in owns the subscription.
    """
    roles = world.subscription.permissions[action]
    if principal == world.subscription.object_id and "Owner" in roles:
        return True
    return not roles.isdisjoint(held(world, (principal,), scope.text))


def grants(action: str, actions: Iterable[str], not_actions: Iterable[str]) -> bool:
    """Returns whether a role grants an action: one of its actions matches, and none of those that it excludes.

    `*` stands for any text, slashes included, and case does not count
    (https://learn.microsoft.com/azure/role-based-access-control/role-definitions).
    """
    return _matches_any(action, actions) and not _matches_any(action, not_actions)


def _matches_any(action: str, patterns: Iterable[str]) -> bool:
    return any(re.fullmatch(".*".join(map(re.escape, each.split("*"))), action, re.I | re.S) for each in patterns)


def held(world: World, principals: Collection[str], scope: str) -> set[str]:
    """Names of the roles that any of these principals (object ids) has on a scope: on itself, or on one above it."""
    return {
        world.subscription.roles[assignment.properties["roleDefinitionId"].rpartition("/")[2]]
        for assignment in world.store.all(TYPE)
        if assignment.properties["principalId"] in principals
        and f"{scope.lower()}/".startswith(f"{assignment.id.scope.lower()}/")
        and not faults.waits(world, assignment)
    }
