"""Authorizes changes in Resource Manager, and lists permissions and role definitions.

Error text: Azure/azure-cli#32165.
"""

from __future__ import annotations

import re
from http import HTTPStatus

from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError
from simulator.azure.ids import GROUP_TYPE, Path
from simulator.azure.rest import PathRequest, Request
from simulator.azure.schema import schemas
from simulator.azure.store import Body
from simulator.azure.types.role_assignment.allowed import PERMISSIONS, allows, built_in, held

_BY_NAME = re.compile(r"roleName eq '([^']*)'", re.IGNORECASE)
_VERBS = {"PUT": "write", "PATCH": "write", "DELETE": "delete"}
_FEATURES = "/providers/Microsoft.Features"
_READS = ("checknameavailability",)
"""POST actions that only read. They are always allowed."""


def check(world: World, request: Request, path: Path | None) -> None:
    """Raises ArmError (403) if no role of the caller allows the change."""
    if path is None or request.method in ("GET", "HEAD") or path.tail.lower() in _READS:
        return
    verb = f"{path.tail}/action" if request.method == "POST" else _VERBS.get(request.method, request.method)
    caller = request.caller or world.subscription.deployer
    kind, scope = _required(path)
    action = f"{kind}/{verb}"
    if allows(world, (caller.object_id, *caller.groups), action, scope):
        return
    message = (
        f"The client '{caller.upn or caller.client_id}' with object id '{caller.object_id}' does not have "
        f"authorization to perform action '{action}' over scope '{scope}' or the scope is invalid. If access was "
        "recently granted, please refresh your credentials."
    )
    raise ArmError(HTTPStatus.FORBIDDEN, "AuthorizationFailed", message)


def _required(path: Path) -> tuple[str, str]:
    scope = path.id.text if path.names else path.scope
    if path.type == GROUP_TYPE:
        return "Microsoft.Resources/subscriptions/resourcegroups", scope
    if path.scope.endswith(_FEATURES):  # the path's type is the feature's provider, not Microsoft.Features
        return "Microsoft.Features/providers/features", path.scope.removesuffix(_FEATURES)
    known = schemas().get(path.type.lower())
    return known.type if known else path.type, scope


def permissions(world: World, request: PathRequest) -> Body:
    """Returns the caller's permissions on a group or subscription (Permissions_ListForResourceGroup)."""
    caller = request.caller or world.subscription.deployer
    return {"value": [dict(each) for each in held(world, (caller.object_id, *caller.groups), request["scope"])]}


def role_definitions(world: World, request: PathRequest) -> Body:
    """Returns the built-in roles (RoleDefinitions_List). Ignores all filters except `roleName eq`."""
    found = _BY_NAME.search(request.query.get("$filter", ""))
    roles = built_in().values()
    return {"value": [_role(world, role) for role in roles if not found or role["name"].lower() == found[1].lower()]}


def role_definition(world: World, request: PathRequest) -> Body:
    """Returns a role definition (RoleDefinitions_Get). Raises ArmError (404)."""
    return _role(world, known_role(request["role"]))


def known_role(role: str) -> Body:
    """Returns the built-in role with this id. Raises ArmError (404)."""
    found = built_in().get(role.lower())
    if found is None:
        message = f"The specified role definition with ID '{role.lower().replace('-', '')}' does not exist."
        raise ArmError(HTTPStatus.NOT_FOUND, "RoleDefinitionDoesNotExist", message)
    return found


def _role(world: World, role: Body) -> Body:
    above = f"/subscriptions/{world.subscription.subscription_id}/providers/Microsoft.Authorization/roleDefinitions"
    allowed = {kind: role.get(kind, []) for kind in PERMISSIONS}
    properties = {"roleName": role["name"], "type": "BuiltInRole", "assignableScopes": ["/"], "permissions": [allowed]}
    own = {"id": f"{above}/{role['id']}", "type": "Microsoft.Authorization/roleDefinitions", "name": role["id"]}
    return own | {"properties": properties}
