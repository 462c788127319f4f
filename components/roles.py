"""Azure RBAC: role assignments, and who deploys."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import authorization

from components._base import Component
from config.schema.models import ClusterSettings, PrincipalType

RBAC_CLUSTER_ADMIN = "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"
"""Azure Kubernetes Service RBAC Cluster Admin."""
CONTRIBUTOR = "b24988ac-6180-42a0-ab88-20f7382dd24c"
RBAC_ADMINISTRATOR = "f58310d9-a9f6-439a-9e8d-f62e7b41a168"
"""Role Based Access Control Administrator."""
ACR_PULL = "7f951dda-4ed3-4680-a7ca-43fe172d538d"
BLOB_DATA_READER = "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1"
"""Storage Blob Data Reader."""
BLOB_DATA_CONTRIBUTOR = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"
"""Storage Blob Data Contributor."""
BLOB_DATA_OWNER = "b7e6dc6d-f1e8-4753-8033-0f276bb0955b"
"""Storage Blob Data Owner, who alone may set permissions of files."""
NETWORK_CONTRIBUTOR = "4d97b98b-1d4f-4787-a291-c67834d212e7"
PRIVATE_DNS_ZONE_CONTRIBUTOR = "b12aa53e-6015-4669-85d0-8515ebb3ae7f"
HANDED_OUT = (
    RBAC_CLUSTER_ADMIN,
    ACR_PULL,
    BLOB_DATA_READER,
    BLOB_DATA_CONTRIBUTOR,
    BLOB_DATA_OWNER,
    NETWORK_CONTRIBUTOR,
    PRIVATE_DNS_ZONE_CONTRIBUTOR,
)
"""Those that this program gives to others: whoever deploys must be able to."""

_NAMESPACE = uuid.UUID("6f0f7c0e-3a0e-5a53-9d0c-5b6a1c1f3a77")
"""Of the assignments' names: ARM wants GUIDs, and the same one each time."""


@dataclass(frozen=True, kw_only=True)
class Principal:
    """Who holds a role."""

    object_id: pulumi.Output[str]
    kind: PrincipalType
    """Stated, because a service principal that is new to Azure RBAC is looked up in vain for a while."""


def deployer(settings: ClusterSettings, parent: Component) -> Principal:
    """The identity that Pulumi is logged in as, or the one that the settings name."""
    chosen = settings.deployer_object_id
    guess: PrincipalType = "User" if settings.login == "azurecli" else "ServicePrincipal"
    login = authorization.get_client_config_output(opts=pulumi.InvokeOutputOptions(parent=parent))
    return Principal(
        object_id=pulumi.Output.from_input(str(chosen)) if chosen else login.object_id,
        kind=settings.deployer_type or guess,
    )


def only(handed_out: Iterable[str]) -> str:
    """The condition by which RBAC_ADMINISTRATOR gives and takes these roles alone.

    In the words of Azure's page with examples of delegated role assignments ("Constrain roles").
    """
    guids = ", ".join(sorted(handed_out))
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
    """Gives the principal a role, by the GUID of its definition, at a scope, by its ARM id."""
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
