"""Shared files by NFS: an Azure Files account in the stack's own network, and the StorageClass of its shares.

The stack creates the account. If azurefile-csi-driver created it with `networkEndpointType: privateEndpoint`, the
driver would also create an endpoint, a zone and a link. That needs broad rights in the network's group, and nothing
would delete these resources (cloud-provider-azure, EnsureStorageAccount), so the network could not be destroyed. In an
existing account, the driver only creates and deletes shares, through Resource Manager (controllerserver.go,
CreateVolume), with a role on the account.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_azure_native import storage

from components._base import Component
from components.azure import roles
from components.azure.private_endpoints import PrivateEndpoints
from components.azure.roles import subscription_id
from components.context import SharedClass
from config.data.storage_classes import aks_classes
from config.schema.models import Settings
from config.schema.network import OF_FILES
from config.schema.storage import SHARED_CLASS

SKU = "Premium_LRS"
"""The account's SKU. NFS requires premium, with shares of at least 100 GiB (driver-parameters.md, `skuName`).

PremiumV2_LRS, which AKS's page on Azure Files recommends, requires driver 1.35; Kubernetes 1.34 has driver 1.34.
"""
MOUNT_OPTIONS = ["nconnect=4", "noresvport", "actimeo=30"]
"""Options of AKS's page on Azure Files ("Recommended mount options for NFS shares"). The driver adds `vers`, `sec`."""


class SharedFiles(Component):
    """The account, which outlives clusters. Create it only if `storage.sharedFiles` is `nfs`."""

    account_name: str

    def __init__(
        self,
        name: str,
        settings: Settings,
        resource_group: pulumi.Input[str],
        endpoints: PrivateEndpoints,
        control_plane: roles.Principal,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        self._resource_group = resource_group
        self.account_name = settings.storage.files_account(settings.names, subscription_id())
        account = self._account(settings)
        endpoints.connect(self.account_name, account.id, OF_FILES)
        # driver-parameters.md, "required permissions for CSI driver controller"
        role = roles.assign(
            "cluster-files",
            role=roles.STORAGE_ACCOUNT_CONTRIBUTOR,
            scope=account.id,
            principal=control_plane,
            parent=self,
        )
        self._needs = [role, *endpoints.ready]
        self.register_outputs({"account": self.account_name})

    def _account(self, settings: Settings) -> storage.StorageAccount:
        """Creates the account without keys and secure transfer, which NFS does not support (Azure's page on
        troubleshooting NFS shares).
        """
        return storage.StorageAccount(
            "files-account",
            account_name=self.account_name,
            resource_group_name=self._resource_group,
            location=settings.location,
            kind=storage.Kind.FILE_STORAGE,
            sku=storage.SkuArgs(name=SKU),
            allow_blob_public_access=False,
            allow_shared_key_access=False,
            enable_https_traffic_only=False,
            minimum_tls_version=storage.MinimumTlsVersion.TLS1_2,
            public_network_access="Disabled",
            opts=self.kept_until_replaced(protect=settings.storage.protect),
        )

    def offer(
        self, provider: pulumi.ProviderResource, hooks: pulumi.ResourceHookBinding | None
    ) -> kubernetes.storage.v1.StorageClass:
        return kubernetes.storage.v1.StorageClass(
            SHARED_CLASS,
            metadata={"name": SHARED_CLASS},
            **storage_class(self.account_name, self._resource_group),
            opts=self.child(provider=provider, hooks=hooks, depends_on=self._needs),
        )


def shared_class(
    settings: Settings, made: Sequence[pulumi.Resource], opts: pulumi.ResourceOptions
) -> SharedClass | None:
    """Returns the class of shared files, or None if the settings have none.

    If neither the stack nor AKS creates the class, reads it from the cluster. If it is missing there, previews fail and
    show the resource's name, which is the key of the setting.
    """
    name = settings.shared_class
    if name is None:
        return None
    if name == settings.storage.shared_class and name not in (settings.operators.shared_class, *aks_classes().files):
        made = [kubernetes.storage.v1.StorageClass.get("storage.sharedClass", name, opts=opts)]
    return SharedClass(name=name, made=made)


def storage_class(account: str, resource_group: pulumi.Input[str]) -> dict[str, Any]:
    """Returns the class without its name. A share is deleted with its claim.

    `networkEndpointType` makes nodes use the share at `<account>.privatelink.file.core.windows.net`. Without it, the
    driver would add service endpoints to all subnets of the network (CreateVolume, updateSubnetServiceEndpoints).
    """
    parameters = {
        "protocol": "nfs",
        "skuName": SKU,
        "resourceGroup": resource_group,
        "storageAccount": account,
        "networkEndpointType": "privateEndpoint",
    }
    return {
        "provisioner": "file.csi.azure.com",
        "parameters": parameters,
        "mount_options": MOUNT_OPTIONS,
        "allow_volume_expansion": True,
        "reclaim_policy": "Delete",
        "volume_binding_mode": "Immediate",
    }
