"""Role assignments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus

from simulator.azure import authorization, faults, graph
from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError, bad_request, conflict
from simulator.azure.ids import ResourceId, parse_id
from simulator.azure.kind import Kind
from simulator.azure.store import Body, Record
from simulator.azure.types.managed_cluster import rules as clusters
from simulator.azure.types.role_assignment.allowed import TYPE

_NAMESPACES = f"{clusters.TYPE}/namespaces".lower()
_FIXED = ("principalId", "roleDefinitionId")
_FILTER = re.compile(r"(?P<at>atScope\(\))?(?: and )?(?:(?:assignedTo\(|principalId eq )'(?P<to>[\w-]+)'\)?)?")


class RoleAssignments(Kind):
    shown_deleted = True

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        properties = body["properties"]
        role = authorization.known_role(properties["roleDefinitionId"].rpartition("/")[2])["id"]
        properties["principalId"] = properties["principalId"].lower()  # GUIDs are case-insensitive
        self._check_scope(world, record.id)
        definition = f"/subscriptions/{world.subscription.subscription_id}/providers/Microsoft.Authorization"
        properties["roleDefinitionId"] = f"{definition}/roleDefinitions/{role}"
        _check_type(world, properties)
        for other in world.store.all(TYPE):  # names are unique in a tenant: MicrosoftDocs/azure-docs#85388
            changes = other.id != record.id or any(other.properties[name] != properties[name] for name in _FIXED)
            if changes and other.id.name.lower() == record.id.name.lower():
                message = "Tenant ID, application ID, principal ID, and scope are not allowed to be updated."
                raise bad_request(message, code="RoleAssignmentUpdateNotPermitted")
        self._check_unique(world, record.id, properties)
        record.body = body
        world.store.put(record)

    def chosen(self, world: World, scope: str, records: Sequence[Record], text: str) -> Sequence[Record]:
        """Filters as in Azure's page "List Azure role assignments using the REST API"."""
        found = _FILTER.fullmatch(text)
        if found is None:
            ours = "atScope(), assignedTo('<id>') and principalId eq '<id>'"
            raise bad_request(f"The filter '{text}' is not supported; only {ours} are.")
        if found["at"]:
            above = (
                each for each in world.store.all(TYPE) if f"{scope}/".lower().startswith(f"{each.id.scope}/".lower())
            )
            records = list(above)
        to = str(found["to"] or "").lower()
        known = world.subscription.directory.values() if "assignedTo" in text else ()  # includes the user's groups
        wanted = [to, *(group.lower() for each in known if each.object_id.lower() == to for group in each.groups)]
        return [each for each in records if not to or each.properties["principalId"] in wanted]

    def outputs(self, world: World, record: Record) -> Body:
        return {"scope": record.id.scope}

    @staticmethod
    def _check_scope(world: World, resource: ResourceId) -> None:
        """Checks that the scope exists, except for namespaces in a cluster (AKS's page on Entra ID authorization)."""
        if resource.scope.count("/") <= 2:
            return
        scope = parse_id(resource.scope)
        if scope.type.lower() == _NAMESPACES:
            scope = scope.parent
        if world.store.get(scope) is None:
            message = f"The Resource '{scope.type}/{'/'.join(scope.names)}' of scope '{scope.text}' was not found."
            raise ArmError(HTTPStatus.NOT_FOUND, "ResourceNotFound", message)

    @staticmethod
    def _check_unique(world: World, resource: ResourceId, properties: Body) -> None:
        for other in world.store.all(resource.type):
            same_scope = other.id.scope.lower() == resource.scope.lower() and other.id != resource
            if same_scope and all(other.properties[name] == properties[name] for name in _FIXED):
                message = (
                    f"The role assignment already exists. The ID of the existing role assignment is {other.id.name}."
                )
                raise conflict(message, code="RoleAssignmentExists")


KIND = RoleAssignments()


def _check_type(world: World, properties: Body) -> None:
    """Sets an omitted principalType. Error text: Azure/modern-web-app-pattern-dotnet#129."""
    principal, given = properties["principalId"], properties.get("principalType")
    cluster = next((found for found in world.store.all(clusters.TYPE) if principal in clusters.identities(found)), None)
    kinds = (
        each["@odata.type"].rpartition(".")[2] for each in graph.directory(world) if each["id"].lower() == principal
    )
    found = next((f"{kind[0].upper()}{kind[1:]}" for kind in kinds), "")
    if found and given not in (None, found):
        message = (
            f"The PrincipalId '{principal.replace('-', '')}' has type '{found}' , which is different from specified "
            f"PrinciaplType '{given}'."
        )
        raise bad_request(message, code="UnmatchedPrincipalType")
    if not given and (not found or (cluster and faults.waits(world, cluster))):
        message = (
            f"Principal {principal.replace('-', '')} does not exist in the directory {world.subscription.tenant_id}. "
            "Check that you have the correct principal ID. If you are creating this principal and then immediately "
            "assigning a role, this error might be related to a replication delay. In this case, set the role "
            "assignment principalType property to a value, such as ServicePrincipal, User, or Group. "
            "See https://aka.ms/docs-principaltype"
        )
        raise bad_request(message, code="PrincipalNotFound")
    properties.setdefault("principalType", found)
