"""Azure RBAC: role assignments, the deployer, and the subscription."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import authorization

from components._base import Component
from config.data import data
from config.data.azure_roles import guid, name_of
from config.schema.cluster import ClusterSettings, PrincipalType

RBAC_CLUSTER_ADMIN = guid("Azure Kubernetes Service RBAC Cluster Admin")
CLUSTER_USER = guid("Azure Kubernetes Service Cluster User Role")
"""The role for `az aks get-credentials` (AKS's page on access to kubeconfigs)."""
CONTRIBUTOR = guid("Contributor")
RBAC_ADMINISTRATOR = guid("Role Based Access Control Administrator")
ACR_PULL = guid("AcrPull")
BLOB_DATA_READER = guid("Storage Blob Data Reader")
BLOB_DATA_CONTRIBUTOR = guid("Storage Blob Data Contributor")
BLOB_DATA_OWNER = guid("Storage Blob Data Owner")
"""The only blob role that may set permissions of files."""
NETWORK_CONTRIBUTOR = guid("Network Contributor")
PRIVATE_DNS_ZONE_CONTRIBUTOR = guid("Private DNS Zone Contributor")
STORAGE_ACCOUNT_CONTRIBUTOR = guid("Storage Account Contributor")
ASSIGNED_ROLES = {
    role: name_of(role)
    for role in (
        RBAC_CLUSTER_ADMIN,
        CLUSTER_USER,
        ACR_PULL,
        BLOB_DATA_READER,
        BLOB_DATA_CONTRIBUTOR,
        BLOB_DATA_OWNER,
        NETWORK_CONTRIBUTOR,
        PRIVATE_DNS_ZONE_CONTRIBUTOR,
        STORAGE_ACCOUNT_CONTRIBUTOR,
    )
}
"""The roles that this program assigns, with their names. The deployer needs the right to assign them."""
JUMP_BOX_ROLES = {role: name_of(role) for role in (CONTRIBUTOR, RBAC_ADMINISTRATOR)}
"""The additional roles, with their names, that the deployer assigns to a new jump box."""

_NAMESPACE = uuid.UUID("6f0f7c0e-3a0e-5a53-9d0c-5b6a1c1f3a77")
"""The namespace of UUIDs for names of role assignments. ARM requires GUIDs, which must not change between updates."""


@dataclass(frozen=True, kw_only=True)
class Principal:
    object_id: pulumi.Output[str]
    kind: pulumi.Input[PrincipalType]
    """The principal's type. It is explicit, because Azure RBAC cannot look up a new service principal at first."""


def deployer(settings: ClusterSettings, parent: Component) -> Principal:
    kind = settings.deployer_type
    if chosen := settings.deployer_object_id:
        return Principal(object_id=pulumi.Output.from_input(str(chosen)), kind=kind or "User")
    login = authorization.get_client_config_output(opts=pulumi.InvokeOutputOptions(parent=parent))
    return Principal(object_id=login.object_id, kind=kind or login.client_id.apply(_type_of_client))


def _type_of_client(client_id: str) -> PrincipalType:
    return "User" if client_id in data.read("user_clients.yaml") else "ServicePrincipal"


def only(assigned: Iterable[str]) -> str:
    """Returns the condition that limits RBAC_ADMINISTRATOR to assigning and removing the roles `assigned` (Azure's page
    with examples of delegated role assignments, "Constrain roles").
    """
    guids = ", ".join(sorted(assigned))
    attribute = "Microsoft.Authorization/roleAssignments:RoleDefinitionId"
    sides = (("write", "Request"), ("delete", "Resource"))
    return " AND ".join(
        f"((!(ActionMatches{{'Microsoft.Authorization/roleAssignments/{action}'}})) OR "
        f"(@{source}[{attribute}] ForAnyOfAnyValues:GuidEquals {{{guids}}}))"
        for action, source in sides
    )


def assign(
    name: str,
    *,
    role: str,
    scope: pulumi.Output[str],
    principal: Principal,
    parent: Component,
    condition: str | None = None,
) -> authorization.RoleAssignment:
    return authorization.RoleAssignment(
        name,
        role_assignment_name=pulumi.Output.all(scope, principal.object_id).apply(
            lambda parts: str(uuid.uuid5(_NAMESPACE, "/".join([*parts, role])))
        ),
        scope=scope,
        principal_id=principal.object_id,
        principal_type=principal.kind,
        role_definition_id=scope.apply(lambda id_: _definition(id_, role)),
        condition=condition,
        condition_version="2.0" if condition else None,
        opts=parent.kept_until_replaced(),
    )


def _definition(scope: str, role: str) -> str:
    _, subscriptions, subscription, *_ = scope.split("/")
    return f"/{subscriptions}/{subscription}/providers/Microsoft.Authorization/roleDefinitions/{role}"


def subscription_id() -> str:
    """Returns the id as text, not as an output, because names of Azure resources contain its hash."""
    return str(authorization.get_client_config().subscription_id)
