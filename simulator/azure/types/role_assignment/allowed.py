"""Principals' permissions from role assignments."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from config.data import data
from simulator.azure import faults
from simulator.azure.arm_world import World
from simulator.azure.store import Body

TYPE = "Microsoft.Authorization/roleAssignments"
PERMISSIONS = ("actions", "notActions", "dataActions", "notDataActions")
CONTAINERS = "Microsoft.Storage/storageAccounts/blobServices/containers"
READ_BLOBS, WRITE_BLOBS = f"{CONTAINERS}/blobs/read", f"{CONTAINERS}/blobs/write"
DELEGATION_KEY = "Microsoft.Storage/storageAccounts/blobServices/generateUserDelegationKey/action"


@functools.cache
def built_in() -> Mapping[str, Body]:
    file = Path(__file__).parents[2] / "roles.yaml"
    return {role["id"]: {"name": name, **role} for name, role in data.parsed(file.read_text()).items()}


def allows(world: World, principals: Collection[str], action: str, scope: str, *, is_data: bool = False) -> bool:
    """Returns whether roles of the principals (object ids) allow an action or data action on a scope."""
    actions, but = PERMISSIONS[2:] if is_data else PERMISSIONS[:2]
    return any(grants(action, each.get(actions, ()), each.get(but, ())) for each in held(world, principals, scope))


def grants(action: str, actions: Iterable[str], not_actions: Iterable[str]) -> bool:
    """Returns whether `actions` match an action and `not_actions` do not.

    `*` matches any text, including slashes. Matching is case-insensitive
    (https://learn.microsoft.com/azure/role-based-access-control/role-definitions).
    """
    return _matches_any(action, actions) and not _matches_any(action, not_actions)


def _matches_any(action: str, patterns: Iterable[str]) -> bool:
    return any(re.fullmatch(".*".join(map(re.escape, each.split("*"))), action, re.I | re.S) for each in patterns)


def held(world: World, principals: Collection[str], scope: str) -> Iterator[Mapping[str, list[str]]]:
    """Yields principals' permissions on a scope, from roles on the scope or above.

    The deployer also has the permissions in `subscription.yaml`.
    """
    if world.subscription.object_id in principals:
        yield from world.subscription.rights
    wanted = {each.lower() for each in principals}
    for assignment in world.store.all(TYPE):
        is_above = f"{scope.lower()}/".startswith(f"{assignment.id.scope.lower()}/")
        if is_above and assignment.properties["principalId"] in wanted and not faults.waits(world, assignment):
            role = built_in()[assignment.properties["roleDefinitionId"].rpartition("/")[2]]
            yield {kind: role.get(kind, []) for kind in PERMISSIONS}
