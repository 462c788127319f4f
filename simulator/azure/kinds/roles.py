"""Role assignments."""

from __future__ import annotations

from http import HTTPStatus

from simulator.azure.errors import ArmError, bad_request, conflict
from simulator.azure.ids import ResourceId, parse_id
from simulator.azure.store import Body, Record
from simulator.azure.world import World, envelope

_FIXED = ("principalId", "roleDefinitionId")


class RoleAssignments:
    """One principal, one role, one scope."""

    asynchronous = False

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        properties = body["properties"]
        role = properties["roleDefinitionId"].rpartition("/")[2].lower()
        if role not in world.subscription.roles:
            message = f"The specified role definition with ID '{role.replace('-', '')}' does not exist."
            raise ArmError(HTTPStatus.NOT_FOUND, "RoleDefinitionDoesNotExist", message)
        self._check_scope(world, record.id)
        definition = f"/subscriptions/{world.subscription.subscription_id}/providers/Microsoft.Authorization"
        properties["roleDefinitionId"] = f"{definition}/roleDefinitions/{role}"
        properties.setdefault("principalType", "User")
        if existing and any(existing.properties[name] != properties[name] for name in _FIXED):
            message = "Tenant ID, application ID, principal ID, and scope are not allowed to be updated."
            raise bad_request(message, code="RoleAssignmentUpdateNotPermitted")
        self._check_unique(world, record.id, properties)
        record.body = body
        world.store.put(record)

    def check_delete(self, world: World, record: Record) -> None:
        """A role assignment can always be deleted."""

    def view(self, world: World, record: Record) -> Body:
        return envelope(record, {"properties": record.properties | {"scope": record.id.scope}})

    @staticmethod
    def _check_scope(world: World, resource: ResourceId) -> None:
        """A scope is a subscription, a group, or a resource, and must be there."""
        if resource.scope.count("/") <= 2:
            return
        scope = parse_id(resource.scope)
        if world.store.get(scope) is None:
            message = f"The Resource '{scope.type}/{'/'.join(scope.names)}' of scope '{scope.text}' was not found."
            raise ArmError(HTTPStatus.NOT_FOUND, "ResourceNotFound", message)

    @staticmethod
    def _check_unique(world: World, resource: ResourceId, properties: Body) -> None:
        for other in world.store.all(resource.type):
            same_scope = other.id.scope.lower() == resource.scope.lower() and other.id.key != resource.key
            if same_scope and all(other.properties[name] == properties[name] for name in _FIXED):
                message = (
                    f"The role assignment already exists. The ID of the existing role assignment is {other.id.name}."
                )
                raise conflict(message, code="RoleAssignmentExists")
