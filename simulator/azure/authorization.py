"""What Microsoft.Authorization lists beside role assignments: role definitions and the rights of who is signed in."""

from __future__ import annotations

import re
from http import HTTPStatus

from simulator.azure import guard
from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError
from simulator.azure.rest import Asked
from simulator.azure.store import Body

_BY_NAME = re.compile(r"roleName eq '([^']*)'", re.IGNORECASE)


def permissions(world: World, _asked: Asked) -> Body:
    """Permissions_ListForResourceGroup, which a subscription answers too."""
    return {"value": [dict(role) for role in world.subscription.rights]}


def role_definitions(world: World, asked: Asked) -> Body:
    """RoleDefinitions_List. Of filters only `roleName eq` chooses: the built-in roles are at every scope."""
    found = _BY_NAME.search(asked.query.get("$filter", ""))
    roles = world.subscription.roles.items()
    return {
        "value": [_role(world, role, name) for role, name in roles if not found or name.lower() == found[1].lower()]
    }


def role_definition(world: World, asked: Asked) -> Body:
    """RoleDefinitions_Get. Raises ArmError (404)."""
    role = asked["role"].lower()
    if role not in world.subscription.roles:
        message = f"The specified role definition with ID '{role.replace('-', '')}' does not exist."
        raise ArmError(HTTPStatus.NOT_FOUND, "RoleDefinitionDoesNotExist", message)
    return _role(world, role, world.subscription.roles[role])


def _role(world: World, role: str, name: str) -> Body:
    """Of permissions only those inside clusters are known here."""
    above = f"/subscriptions/{world.subscription.subscription_id}/providers/Microsoft.Authorization/roleDefinitions"
    kinds = ("actions", "notActions", "dataActions", "notDataActions")
    allowed = {kind: guard.permissions().get(name, {}).get(kind, []) for kind in kinds}
    properties = {"roleName": name, "type": "BuiltInRole", "assignableScopes": ["/"], "permissions": [allowed]}
    own = {"id": f"{above}/{role}", "type": "Microsoft.Authorization/roleDefinitions", "name": role}
    return own | {"properties": properties}
