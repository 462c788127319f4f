"""The platform of another stack, as a stack uses it that brings only workloads."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
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
from components.team_space import TeamSpace
from components.workspace import Workspace
from config.schema.models import Lender, Placement, Settings
from config.schema.workload import Member


class BorrowedPlatform(Component):
    """A way into the other stack's cluster, and a namespace there with this stack's name.

    Workloads of teams are in the teams' namespaces instead: where all are, the stack makes none.
    """

    provider: kubernetes.Provider

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
        self._in_cluster = in_cluster
        self._access = self._containers()
        for container, access in self._access.items():
            check_expiry(access, users=settings.users(container), stack=str(lender.stack))
        self._shared_class = shared_class(settings, (), self.child(provider=self.provider))
        self.register_outputs({"platform": str(lender.stack)})

    @cached_property
    def workspace(self) -> Workspace:
        """The namespace of this stack's name, made for the first workload that is there."""
        own = [placed for placed in self.settings.placements.values() if placed.options.member is None]
        used = {container for placed in own for container in placed.options.containers}
        plain = self.lender.lending.federation
        return Workspace(
            "workspace",
            self.settings.stack,
            {name: access for name, access in self._access.items() if name in used},
            None,
            platform_guard.GUEST_LABELS,
            federation=Federation.of(plain) if plain else None,
            opts=self._in_cluster,
        )

    def _team_space(self, placed: Placement[Any], member: Member, prefix: str) -> TeamSpace:
        used = placed.options.containers
        return TeamSpace(
            placed.name,
            team=member.team,
            user=member.user or self.settings.teams[member.team].users[0],
            prefix=f"{prefix}{placed.name}-",
            containers={name: access for name, access in self._access.items() if name in used},
            kubeconfig=self._outputs.require_output("kubeconfig"),
            cluster=self._outputs.require_output("clusterId"),
            opts=self._in_cluster,
        )

    def _containers(self) -> dict[str, ContainerAccess]:
        sas = self._outputs.require_output("sas")
        return {name: ContainerAccess.of(plain, sas[name]) for name, plain in self.lender.lending.containers.items()}

    def image(self, name: str) -> str:
        """Reference of an image of `docker/`."""
        return images.own(name, login_server=self.lender.lending.login_server, mirror=self.settings.images.registry)

    def context_of(self, placed: Placement[Any]) -> WorkloadContext:
        """What a workload is given."""
        prefix = f"{self.settings.stack}-"
        if member := placed.options.member:
            space = self._team_space(placed, member, prefix)
            return self._context(
                provider=space.provider,
                namespace=member.team,
                service_account="default",
                volumes=space.volumes,
                prefix=prefix,
            )
        own = self.workspace
        return self._context(
            provider=self.provider, namespace=own.namespace, service_account=own.account, volumes=own.volumes
        )

    def _context(self, **place: Any) -> WorkloadContext:
        """The platform is up already, so there is nothing to wait for."""
        return WorkloadContext(
            pools=gpu_pools(self.settings),
            rdma_resource=self.settings.rdma_resource,
            image=self.image,
            shared_class=self._shared_class,
            ready=[],
            **place,
        )

    def outputs(self) -> Mapping[str, Any]:
        """What the stack exports of it."""
        return {
            "platformStack": str(self.lender.stack),
            "clusterId": self._outputs.require_output("clusterId"),
            "kubeconfig": self._outputs.require_output("kubeconfig"),  # secret
        }
