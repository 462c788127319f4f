"""The stack's container registry, for the images of `docker/`."""

from __future__ import annotations

import pulumi
from pulumi_azure_native import authorization, containerregistry

from components._base import Component
from components.azure import roles
from components.azure.cluster import Cluster
from components.azure.roles import subscription_id
from config.schema.models import Settings
from config.schema.registry import login_server


class Registry(Component):
    """Azure Container Registry without an admin user: pushes need a login, and pulls need a role."""

    name: str
    login_server: str
    resource: containerregistry.Registry

    def __init__(
        self,
        name: str,
        settings: Settings,
        resource_group: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        self.name = settings.registry.full_name(settings.names, subscription_id())
        self.login_server = login_server(self.name)
        self.resource = containerregistry.Registry(
            "registry",
            registry_name=self.name,
            resource_group_name=resource_group,
            location=settings.location,
            sku=containerregistry.SkuArgs(name=settings.registry.sku),
            admin_user_enabled=False,
            public_network_access="Disabled" if settings.network.private else None,
            opts=self.kept_until_replaced(),
        )
        self.register_outputs({"id": self.resource.id, "loginServer": self.login_server})

    def attach(self, cluster: Cluster) -> authorization.RoleAssignment:
        return roles.assign(
            "kubelet-pulls",
            role=roles.ACR_PULL,
            scope=self.resource.id,
            principal=roles.Principal(object_id=cluster.kubelet_object_id, kind="ServicePrincipal"),
            parent=self,
        )
