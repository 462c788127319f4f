"""What names Azure's published requests take, as the azure-mgmt packages check them before they send anything."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from unittest import mock

from azure.mgmt.authorization.v2022_04_01.operations import _role_assignments_operations as role_assignments
from azure.mgmt.containerregistry.v2023_01_01_preview.operations import _registries_operations as registries
from azure.mgmt.containerservice.operations import _agent_pools_operations as agent_pools
from azure.mgmt.containerservice.operations import _maintenance_configurations_operations as maintenance_configurations
from azure.mgmt.containerservice.operations import _managed_clusters_operations as managed_clusters
from azure.mgmt.msi.v2023_01_31.operations import _federated_identity_credentials_operations as federated_credentials
from azure.mgmt.msi.v2023_01_31.operations import _user_assigned_identities_operations as identities
from azure.mgmt.resource.resources.v2022_09_01.operations import _operations as resources
from azure.mgmt.storage.operations import _blob_containers_operations as blob_containers
from azure.mgmt.storage.operations import _storage_accounts_operations as storage_accounts

BUILDERS: dict[str, tuple[ModuleType, str, str]] = {
    "Microsoft.Resources/resourceGroups": (
        resources,
        "build_resource_groups_create_or_update_request",
        "resource_group_name",
    ),
    "Microsoft.ContainerService/managedClusters": (
        managed_clusters,
        "build_create_or_update_request",
        "resource_name",
    ),
    "Microsoft.ContainerService/managedClusters/agentPools": (
        agent_pools,
        "build_create_or_update_request",
        "agent_pool_name",
    ),
    "Microsoft.ContainerService/managedClusters/maintenanceConfigurations": (
        maintenance_configurations,
        "build_create_or_update_request",
        "config_name",
    ),
    "Microsoft.Authorization/roleAssignments": (role_assignments, "build_create_request", "role_assignment_name"),
    "Microsoft.ContainerRegistry/registries": (registries, "build_create_request", "registry_name"),
    "Microsoft.Storage/storageAccounts": (storage_accounts, "build_create_request", "account_name"),
    "Microsoft.Storage/storageAccounts/blobServices/containers": (
        blob_containers,
        "build_create_request",
        "container_name",
    ),
    "Microsoft.ManagedIdentity/userAssignedIdentities": (
        identities,
        "build_create_or_update_request",
        "resource_name",
    ),
    "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials": (
        federated_credentials,
        "build_create_or_update_request",
        "federated_identity_credential_resource_name",
    ),
}
"""By resource type: the module and the function that build the request, and its parameter with the name."""


@dataclass(frozen=True)
class NameRules:
    """Length and pattern, each where Azure publishes it."""

    min_length: int = 0
    max_length: int | None = None
    pattern: str = ""

    def take(self, name: str) -> bool:
        """Whether the request would be sent."""
        short = self.max_length is None or len(name) <= self.max_length
        return len(name) >= self.min_length and short and bool(re.match(self.pattern, name))


def name_rules(resource_type: str) -> NameRules:
    """What the type's request says of the name when it is built."""
    module, builder, parameter = BUILDERS[resource_type]
    build = getattr(module, builder)
    given = [name for name, each in inspect.signature(build).parameters.items() if each.kind is not each.VAR_KEYWORD]
    serializer = _Recorder()
    with mock.patch.object(module, "_SERIALIZER", serializer):
        build(**dict.fromkeys(given, "x"))
    rules = serializer.rules[parameter]
    return NameRules(**{key: rules[key] for key in ("min_length", "max_length", "pattern") if key in rules})


class _Recorder:
    """Stands for the packages' serializer, and keeps what it is told of parameters in a request's path."""

    def __init__(self) -> None:
        self.rules: dict[str, dict[str, Any]] = {}

    def url(self, name: str, _value: Any, _kind: str, **rules: Any) -> str:
        self.rules[name] = rules
        return "x"

    def query(self, *_arguments: Any, **_rules: Any) -> str:
        return "x"

    header = query
