"""The functions of the azure-mgmt packages by resource type: each package calls the same thing by names of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from azure.core.credentials import TokenCredential
from azure.mgmt.authorization.v2022_04_01 import AuthorizationManagementClient
from azure.mgmt.containerregistry.v2023_01_01_preview import ContainerRegistryManagementClient
from azure.mgmt.containerservice import ContainerServiceClient
from azure.mgmt.msi.v2023_01_31 import ManagedServiceIdentityClient
from azure.mgmt.resource.resources.v2022_09_01 import ResourceManagementClient
from azure.mgmt.storage import StorageManagementClient

from simulator.azure.ids import parse_id
from tests.support.arm import SUBSCRIPTION
from tests.support.published_models import MODELS
from tests.truth.azure_sdks.examples import EXAMPLES, Body


@dataclass(frozen=True)
class Functions:
    """Names of a client's group of operations and of its functions; those that are awaited begin with `begin_`."""

    client: Any
    group: str
    create: str = "create_or_update"
    read: str = "get"
    delete: str = "delete"
    list: str = "list_by_resource_group"


FUNCTIONS: Mapping[str, Functions] = {
    "Microsoft.Resources/resourceGroups": Functions(
        ResourceManagementClient, "resource_groups", delete="begin_delete", list="list"
    ),
    "Microsoft.ContainerService/managedClusters": Functions(
        ContainerServiceClient, "managed_clusters", create="begin_create_or_update", delete="begin_delete"
    ),
    "Microsoft.ContainerService/managedClusters/agentPools": Functions(
        ContainerServiceClient, "agent_pools", create="begin_create_or_update", delete="begin_delete", list="list"
    ),
    "Microsoft.ContainerService/managedClusters/maintenanceConfigurations": Functions(
        ContainerServiceClient, "maintenance_configurations", list="list_by_managed_cluster"
    ),
    "Microsoft.Authorization/roleAssignments": Functions(
        AuthorizationManagementClient, "role_assignments", create="create", list="list_for_scope"
    ),
    "Microsoft.ContainerRegistry/registries": Functions(
        ContainerRegistryManagementClient, "registries", create="begin_create", delete="begin_delete"
    ),
    "Microsoft.Storage/storageAccounts": Functions(
        StorageManagementClient, "storage_accounts", create="begin_create", read="get_properties"
    ),
    "Microsoft.Storage/storageAccounts/blobServices/containers": Functions(
        StorageManagementClient, "blob_containers", create="create", list="list"
    ),
    "Microsoft.ManagedIdentity/userAssignedIdentities": Functions(
        ManagedServiceIdentityClient, "user_assigned_identities"
    ),
    "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials": Functions(
        ManagedServiceIdentityClient, "federated_identity_credentials", list="list"
    ),
}


class Operations:
    """One type's functions, and the example that they are about."""

    def __init__(self, resource_type: str, endpoint: str, credential: TokenCredential) -> None:
        self._functions, self._example = FUNCTIONS[resource_type], EXAMPLES[resource_type]
        version, self._models, names = MODELS[resource_type]
        self._model, self._version = getattr(self._models, names[-1]), {"api_version": version}
        self.client = self._functions.client(
            credential, SUBSCRIPTION.subscription_id, base_url=endpoint, credential_scopes=[f"{endpoint}/.default"]
        )
        self._group = getattr(self.client, self._functions.group)
        self.arguments = _arguments(self._example.id)

    def put(self, body: Body) -> Body:
        return _shown(self._call(self._functions.create, *self.arguments, self._model.deserialize(body)))

    def get(self) -> Body:
        return _shown(self._call(self._functions.read, *self.arguments))

    def list(self) -> list[Body]:
        return [_shown(found) for found in self._call(self._functions.list, *self.arguments[:-1])]

    def delete(self) -> None:
        self._call(self._functions.delete, *self.arguments)

    def _call(self, name: str, *arguments: Any) -> Any:
        answer = getattr(self._group, name)(*arguments, **self._version)
        return answer.result() if name.startswith("begin_") else answer


def _arguments(identity: str) -> tuple[str, ...]:
    """How the packages name a resource: by its group and names, or by its scope and name."""
    parsed = parse_id(identity)
    if parsed.type == "Microsoft.Authorization/roleAssignments":
        return parsed.scope, parsed.name
    named = zip(parsed.type.split("/")[1:], parsed.names, strict=True)
    names = tuple(name for kind, name in named if kind != "blobServices")  # there is one, `default`
    return names if parsed.group in (None, names[0]) else (parsed.group, *names)


def _shown(answer: Any) -> Body:
    found: Body = answer.serialize(keep_readonly=True)
    return found
