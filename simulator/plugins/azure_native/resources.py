"""The resource types that the stand-in has: where each lives in ARM, how it is named, and what replaces it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from simulator.azure.schema import Field, Schema, schemas
from simulator.plugins.errors import PluginError

API_VERSION = "azureApiVersion"
CREATE_BEFORE_DELETE = "__createBeforeDelete"
"""Input that the plugin adds where it chose a random name, so that old and new can stand side by side."""
_CONTAINER = "properties"
_VERSIONED = re.compile(r"(azure-native:\w+)/v(\d{4})(\d{2})(\d{2}):(\w+)")


@dataclass(frozen=True)
class Definition:
    """One resource type. `path` is ARM's, with the SDK's names of its parameters; the last of them is the name."""

    token: str
    arm_type: str
    path: str
    autoname: Literal["random", "copy", "uuid"]
    replaces: frozenset[str] = frozenset()
    """Properties, by their paths in the SDK's shape, that cannot be updated in the provider's opinion."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Properties that the SDK calls otherwise than ARM does: its name, and ARM's."""

    @cached_property
    def schema(self) -> Schema:
        return schemas()[self.arm_type.lower()]

    @property
    def api_version(self) -> str:
        return self.schema.api_versions[-1]

    @cached_property
    def parameters(self) -> list[str]:
        """Names of the path's parameters, without the subscription."""
        return [name for name in re.findall(r"{(\w+)}", self.path) if name != "subscriptionId"]

    @property
    def name(self) -> str:
        return self.parameters[-1]

    @cached_property
    def outputs(self) -> Mapping[str, Field]:
        """All properties in the SDK's shape: what ARM has under `properties` stands beside the rest."""
        top = self.schema.body.fields
        inner = top[_CONTAINER].fields if self.flattens else {}
        shown = {name: field for name, field in (inner | dict(top)).items() if name != "id"}
        return {self.sdk_name(name): field for name, field in shown.items() if not self._is_container(name)}

    @cached_property
    def inputs(self) -> Mapping[str, Field]:
        """Properties that a program may set, besides the path's parameters."""
        top = self.schema.body.fields
        inner = top[_CONTAINER].fields if self.flattens else {}
        writable = {name: field for name, field in top.items() if not field.read_only and name != _CONTAINER}
        writable |= {name: field for name, field in inner.items() if not field.read_only}
        return {self.sdk_name(name): field for name, field in writable.items()}

    def arm_name(self, name: str) -> str:
        return self.renamed.get(name, name)

    def sdk_name(self, name: str) -> str:
        return next((own for own, arm in self.renamed.items() if arm == name), name)

    @property
    def flattens(self) -> bool:
        """Whether `properties` of the ARM body are top-level in the SDK (not for resource groups)."""
        return self.arm_type != "Microsoft.Resources/resourceGroups"

    def in_container(self, name: str) -> bool:
        inside = self.flattens and self.arm_name(name) in self.schema.body.fields[_CONTAINER].fields
        return inside and name in self.inputs

    def _is_container(self, name: str) -> bool:
        return name == _CONTAINER and self.flattens


_GROUP = "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}"
_CLUSTER = f"{_GROUP}/providers/Microsoft.ContainerService/managedClusters/{{resourceName}}"
_ACCOUNT = f"{_GROUP}/providers/Microsoft.Storage/storageAccounts/{{accountName}}"
_IDENTITY = f"{_GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{{resourceName}}"
_NETWORK = (
    "serviceCidr",
    "serviceCidrs",
    "dnsServiceIP",
    "networkMode",
    "networkPlugin",
    "networkPluginMode",
    "networkPolicy",
    "networkDataplane",
    "podCidr",
    "outboundType",
)
_CLUSTER_REPLACES = (
    "dnsPrefix",
    "fqdnSubdomain",
    "location",
    "nodeResourceGroup",
    "linuxProfile",
    "windowsProfile",
    "diskEncryptionSetID",
    *(f"networkProfile.{name}" for name in _NETWORK),
)

DEFINITIONS: Mapping[str, Definition] = {
    definition.token: definition
    for definition in (
        Definition(
            "azure-native:resources:ResourceGroup",
            "Microsoft.Resources/resourceGroups",
            path=_GROUP,
            autoname="random",
            replaces=frozenset({"location"}),
        ),
        Definition(
            "azure-native:containerservice:ManagedCluster",
            "Microsoft.ContainerService/managedClusters",
            path=_CLUSTER,
            autoname="random",
            replaces=frozenset(_CLUSTER_REPLACES),
        ),
        Definition(
            "azure-native:containerservice:AgentPool",
            "Microsoft.ContainerService/managedClusters/agentPools",
            path=f"{_CLUSTER}/agentPools/{{agentPoolName}}",
            autoname="copy",
            replaces=frozenset({"vmSize", "gpuInstanceProfile", "networkProfile.nodePublicIPTags"}),
        ),
        Definition(
            "azure-native:containerservice:MaintenanceConfiguration",
            "Microsoft.ContainerService/managedClusters/maintenanceConfigurations",
            path=f"{_CLUSTER}/maintenanceConfigurations/{{configName}}",
            autoname="copy",
        ),
        Definition(
            "azure-native:authorization:RoleAssignment",
            "Microsoft.Authorization/roleAssignments",
            path="/{scope}/providers/Microsoft.Authorization/roleAssignments/{roleAssignmentName}",
            autoname="uuid",
            replaces=frozenset({"principalId"}),
        ),
        Definition(
            "azure-native:containerregistry:Registry",
            "Microsoft.ContainerRegistry/registries",
            path=f"{_GROUP}/providers/Microsoft.ContainerRegistry/registries/{{registryName}}",
            autoname="random",
            replaces=frozenset({"location"}),
        ),
        Definition(
            "azure-native:storage:StorageAccount",
            "Microsoft.Storage/storageAccounts",
            path=_ACCOUNT,
            autoname="random",
            replaces=frozenset({"isHnsEnabled", "location"}),
            renamed={"enableHttpsTrafficOnly": "supportsHttpsTrafficOnly"},
        ),
        Definition(
            "azure-native:storage:BlobContainer",
            "Microsoft.Storage/storageAccounts/blobServices/containers",
            path=f"{_ACCOUNT}/blobServices/default/containers/{{containerName}}",
            autoname="copy",
        ),
        Definition(
            "azure-native:managedidentity:UserAssignedIdentity",
            "Microsoft.ManagedIdentity/userAssignedIdentities",
            path=_IDENTITY,
            autoname="random",
            replaces=frozenset({"location"}),
        ),
        Definition(
            "azure-native:managedidentity:FederatedIdentityCredential",
            "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials",
            path=f"{_IDENTITY}/federatedIdentityCredentials/{{federatedIdentityCredentialResourceName}}",
            autoname="copy",
        ),
    )
}


def definition(token: str) -> Definition:
    """The definition of a type token, an explicit API version being the default one. Raises PluginError."""
    plain, version = token, None
    if match := _VERSIONED.fullmatch(token):
        plain, version = f"{match[1]}:{match[5]}", f"{match[2]}-{match[3]}-{match[4]}"
    found = DEFINITIONS.get(plain)
    if found is None:
        known = ", ".join(DEFINITIONS)
        raise PluginError(f"Resource type {token} is not simulated. The simulator has: {known}.")
    if version not in (None, found.api_version):
        raise PluginError(
            f"Resource type {token} is not simulated: of {plain} only API version {found.api_version} is."
        )
    return found


def of_urn(urn: str) -> Definition:
    """The definition of a resource's type (the last one in the URN's chain of types)."""
    return definition(urn.split("::")[2].rpartition("$")[2])
