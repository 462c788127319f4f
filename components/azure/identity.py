"""The identity that opens blob containers for the pods of one namespace, without secret, expiry or account key.

A pod has a token that names its service account and is signed by the cluster's issuer. Entra ID exchanges it for a
token of the managed identity whose federated credential has this issuer, subject and audience. The role Contributor is
enough for blobfuse2, which sets permissions of files: in a hierarchical namespace, a file's owner may do that (Azure's
page on access control lists in Data Lake Storage: the owning user).

The blob CSI driver gets the token from the kubelet (kubernetes-sigs/blob-csi-driver at 0744a60, pkg/blob/nodeserver.go,
NodePublishVolume), and blobfuse2 gets it as a file (pkg/blob/blob.go, GetAuthEnv).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_azure_native import managedidentity

from components._base import Component
from components.azure import roles
from components.storage.container_access import ContainerAccess
from config.data.blobfuse import ACCOUNT, AUDIENCE

CLIENT_ANNOTATION = "azure.workload.identity/client-id"
"""The annotation for pods that log in to Azure (label azure.workload.identity/use). The driver does not read it."""


@dataclass(frozen=True, kw_only=True)
class Federation:
    """The place where the identities of a platform's namespaces are created, and the issuer of its cluster's tokens."""

    resource_group: pulumi.Input[str]
    location: str
    cluster: str
    issuer: pulumi.Input[str]


class WorkloadIdentity(Component):
    """A managed identity for one service account, with a role on each container mounted in the namespace."""

    client_id: pulumi.Output[str]
    account: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        federation: Federation,
        containers: Collection[ContainerAccess],
        *,
        namespace: str,
        needs: kubernetes.core.v1.Namespace,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Creates an identity with one credential. Azure rejects concurrent writes of several credentials."""
        super().__init__(name, opts)
        identity = managedidentity.UserAssignedIdentity(
            "identity",
            resource_name_=f"{federation.cluster}-{namespace}",
            resource_group_name=federation.resource_group,
            location=federation.location,
            opts=self.child(),
        )
        managedidentity.FederatedIdentityCredential(
            "credential",
            federated_identity_credential_resource_name=ACCOUNT,
            resource_name_=identity.name,
            resource_group_name=federation.resource_group,
            issuer=federation.issuer,
            subject=f"system:serviceaccount:{namespace}:{ACCOUNT}",
            audiences=[AUDIENCE],
            opts=self.child(),
        )
        who = roles.Principal(object_id=identity.principal_id, kind="ServicePrincipal")
        for access in containers:
            role = roles.BLOB_DATA_READER if access.settings.read_only else roles.BLOB_DATA_CONTRIBUTOR
            scope = pulumi.Output.from_input(access.scope)
            roles.assign(f"blobs-{access.container}", role=role, scope=scope, principal=who, parent=self)
        self.client_id = identity.client_id
        self.account = self._account(needs)
        self.register_outputs({"clientId": self.client_id})

    def _account(self, namespace: kubernetes.core.v1.Namespace) -> pulumi.Output[str]:
        account = kubernetes.core.v1.ServiceAccount(
            ACCOUNT,
            metadata={
                "name": ACCOUNT,
                "namespace": namespace.metadata["name"],
                "annotations": {CLIENT_ANNOTATION: self.client_id},
            },
            opts=self.child(),
        )
        name: pulumi.Output[str] = account.metadata["name"]
        return name
