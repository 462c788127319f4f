"""Blob storage: an account, its containers, and access to them."""

from __future__ import annotations

import pulumi
from pulumi_azure_native import authorization, storage

from components._base import Component
from components.azure import roles
from components.azure.private_endpoints import PrivateEndpoints
from components.azure.roles import subscription_id
from components.storage.container_access import ContainerAccess, Sas
from components.storage.sas import ContainerSas, check_expiry
from config.schema.models import Settings
from config.schema.network import OF_ACCOUNT
from config.schema.storage import Account, ContainerSettings


class Storage(Component):
    """One storage account, which outlives clusters. Create it only if it has containers."""

    account: Account
    account_name: str
    containers: dict[str, ContainerAccess]

    def __init__(
        self,
        name: str,
        settings: Settings,
        resource_group: pulumi.Input[str],
        account: Account,
        *,
        deployer: roles.Principal | None = None,
        endpoints: PrivateEndpoints | None = None,
        signs: bool = True,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Creates the account, with private `endpoints` if given.

        `deployer` signs SAS; the default is the identity that runs this program. Without `signs`, no SAS are issued,
        because signing needs access to the network.
        """
        super().__init__(name, opts)
        self._deployer, self._signs = deployer, signs
        self._settings = settings
        self._resource_group = resource_group
        self.account = account
        self.account_name = account.full_name(settings.names, subscription_id())
        self._account = self._storage_account()
        self._before_signing: list[pulumi.Resource] = []
        if endpoints:
            endpoints.connect(self.account_name, self._account.id, OF_ACCOUNT, account.key)
            self._before_signing += endpoints.ready
        if account.settings.uses("user-delegation"):
            self._before_signing.append(self._signing_role())
        self.containers = {
            container: self._container(container, chosen)
            for container, chosen in sorted(account.settings.containers.items())
        }
        self.register_outputs({"account": self.account_name})

    def _storage_account(self) -> storage.StorageAccount:
        chosen = self.account.settings
        premium = chosen.sku.startswith("Premium")
        return storage.StorageAccount(
            self.account.named("storage-account"),
            account_name=self.account_name,
            resource_group_name=self._resource_group,
            location=self._settings.location,
            kind=storage.Kind.BLOCK_BLOB_STORAGE if premium else storage.Kind.STORAGE_V2,
            sku=storage.SkuArgs(name=chosen.sku),
            allow_blob_public_access=False,
            public_network_access="Disabled" if self._settings.network.private else None,
            # An account key opens the whole account and never expires, so keys are only enabled if they sign SAS.
            allow_shared_key_access=chosen.uses("service"),
            enable_https_traffic_only=True,
            minimum_tls_version=storage.MinimumTlsVersion.TLS1_2,
            is_hns_enabled=chosen.hierarchical_namespace,
            opts=self.kept_until_replaced(protect=chosen.protect),
        )

    def _signing_role(self) -> authorization.RoleAssignment:
        """Assigns the signer's role on the account. User-delegation SAS cannot have more rights than this role."""
        containers = self.account.settings.containers.values()
        changes_permissions = any(each.sas == "user-delegation" and "p" in each.permissions for each in containers)
        return roles.assign(
            self.account.named("deployer-blob-data"),
            role=roles.BLOB_DATA_OWNER if changes_permissions else roles.BLOB_DATA_CONTRIBUTOR,
            scope=self._account.id,
            principal=self._deployer or roles.deployer(self._settings.cluster, self),
            parent=self,
        )

    def _container(self, name: str, settings: ContainerSettings) -> ContainerAccess:
        chosen = self.account.settings
        container = storage.BlobContainer(
            f"container-{name}",
            container_name=name,
            account_name=self._account.name,
            resource_group_name=self._resource_group,
            public_access=storage.PublicAccess.NONE,
            opts=self.kept_until_replaced(protect=chosen.protect),
        )
        access = ContainerAccess(
            account=self.account_name,
            account_key=self.account.key,
            container=name,
            hierarchical_namespace=chosen.hierarchical_namespace,
            settings=settings,
            generation=self.account.generation(name),
            url=self._account.primary_endpoints.blob.apply(lambda blob: f"{blob.rstrip('/')}/{name}"),
            sas=self._sas(name, container, settings) if chosen.auth == "sas" and self._signs else None,
            scope=container.id,
        )
        check_expiry(access, users=self._settings.users(name))
        return access

    def _sas(self, name: str, container: storage.BlobContainer, settings: ContainerSettings) -> Sas:
        rotation = self.account.settings.rotation
        issued = ContainerSas(
            name,
            container,
            settings,
            account=self._account,
            resource_group=self._resource_group,
            rotation=rotation,
            needs=self._before_signing,
            opts=self.child(),
        )
        window = issued.window
        return Sas(
            rotation=rotation, start=window.start, expiry=window.expiry, mount=issued.mount, upload=issued.upload
        )
