"""The platform of another stack, as a stack uses it that brings only workloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components import images, platform_guard
from components._base import Component
from components.container_access import ContainerAccess
from components.context import WorkloadContext
from components.identity import Federation
from components.node_pools import gpu_pools
from components.sas import check_expiry
from components.shared_files import shared_class
from components.workspace import Workspace
from config.schema.models import Lender, Settings


class BorrowedPlatform(Component):
    """A way into the other stack's cluster, and a namespace there with this stack's name."""

    provider: kubernetes.Provider
    workspace: Workspace

    def __init__(
        self, name: str, settings: Settings, lender: Lender, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        self.settings = settings
        self.lender = lender
        self._outputs = pulumi.StackReference(str(lender.stack), opts=self.child())
        self.provider = kubernetes.Provider(
            "kubernetes",
            kubeconfig=self._outputs.require_output("kubeconfig"),
            # So that the provider, and all that it made, is replaced with the cluster and not with its credentials.
            cluster_identifier=self._outputs.require_output("clusterId"),
            opts=self.child(),
        )
        in_cluster = self.child(providers={"kubernetes": self.provider})
        containers = self._containers()
        for container, access in containers.items():
            check_expiry(access, users=settings.users(container), stack=str(lender.stack))
        mounted = {name: access for name, access in containers.items() if settings.users(name)}
        plain = lender.lending.federation
        self.workspace = Workspace(
            "workspace",
            settings.stack,
            mounted,
            None,
            platform_guard.GUEST_LABELS,
            federation=Federation.of(plain) if plain else None,
            opts=in_cluster,
        )
        self._shared_class = shared_class(settings, (), self.child(provider=self.provider))
        self.register_outputs({"platform": str(lender.stack)})

    def _containers(self) -> dict[str, ContainerAccess]:
        sas = self._outputs.require_output("sas")
        return {name: ContainerAccess.of(plain, sas[name]) for name, plain in self.lender.lending.containers.items()}

    def image(self, name: str) -> str:
        """Reference of an image of `docker/`."""
        return images.own(name, login_server=self.lender.lending.login_server, mirror=self.settings.images.registry)

    def context(self) -> WorkloadContext:
        """What workloads are given. The platform is up already, so there is nothing to wait for."""
        return WorkloadContext(
            provider=self.provider,
            namespace=self.workspace.namespace,
            service_account=self.workspace.account,
            pools=gpu_pools(self.settings),
            rdma_resource=self.settings.rdma_resource,
            image=self.image,
            volumes=self.workspace.volumes,
            shared_class=self._shared_class,
            ready=[],
        )

    def outputs(self) -> Mapping[str, Any]:
        """What the stack exports of it."""
        return {
            "platformStack": str(self.lender.stack),
            "clusterId": self._outputs.require_output("clusterId"),
            "kubeconfig": self._outputs.require_output("kubeconfig"),  # secret
        }
