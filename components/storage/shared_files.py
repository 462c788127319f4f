"""Shared files by NFS: an account of Azure Files in the stack's own network, and the class that makes shares in it.

The account is the stack's and not the driver's. One that azurefile-csi-driver makes with `networkEndpointType:
privateEndpoint` has its endpoint, zone and link made in the network's group, by an identity that may write all of that
there, and nobody takes them away (cloud-provider-azure, EnsureStorageAccount): the network could not be destroyed any
more. With an account that is there, the driver makes and removes shares through Resource Manager, and nothing else
(controllerserver.go, CreateVolume), so the control plane's identity needs a role on that account alone.
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
"""NFS is on premium accounts alone, whose shares have 100 GiB or more (driver-parameters.md, `skuName`).

PremiumV2_LRS, which AKS's page on Azure Files recommends, would be for driver 1.35 and later: Kubernetes 1.34 has 1.34.
"""
MOUNT_OPTIONS = ["nconnect=4", "noresvport", "actimeo=30"]
"""AKS's page on Azure Files ("Recommended mount options for NFS shares"); version and security are the driver's."""


class SharedFiles(Component):
    """The account, which needs no cluster and outlives any. Make it only with `storage.sharedFiles` `nfs`."""

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
        endpoints.lead_to(self.account_name, account.id, OF_FILES)
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
        """Without secure transfer, which NFS is not (Azure's page on troubleshooting NFS shares), and without keys."""
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
        """Makes the class in a cluster, once shares can be made and reached."""
        return kubernetes.storage.v1.StorageClass(
            SHARED_CLASS,
            metadata={"name": SHARED_CLASS},
            **storage_class(self.account_name, self._resource_group),
            opts=self.child(provider=provider, hooks=hooks, depends_on=self._needs),
        )


def shared_class(
    settings: Settings, made: Sequence[pulumi.Resource], opts: pulumi.ResourceOptions
) -> SharedClass | None:
    """What claims of shared files are of.

    A class that somebody else has made is read: without it previews fail, with this resource's name, which is the key.
    """
    name = settings.shared_class
    if name is None:
        return None
    if name == settings.storage.shared_class and name not in (settings.operators.shared_class, *aks_classes().files):
        made = [kubernetes.storage.v1.StorageClass.get("storage.sharedClass", name, opts=opts)]
    return SharedClass(name=name, made=made)


def storage_class(account: str, resource_group: pulumi.Input[str]) -> dict[str, Any]:
    """The class without its name. A share goes when its claim does.

    `networkEndpointType` says where nodes find the share, at `<account>.privatelink.file.core.windows.net`; without it
    the driver would put service endpoints on all subnets of the network (CreateVolume, updateSubnetServiceEndpoints).
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
