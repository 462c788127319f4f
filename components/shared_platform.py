"""The platform of another stack, for a stack that only runs workloads.

A team's workload runs as a user of that team, in the team's namespace, which other stacks share.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components import images, platform_guard
from components._base import Component
from components.access.kubeconfig import as_user
from components.azure.node_pools import gpu_pools
from components.context import BlobVolume, WorkloadContext
from components.stack_outputs import read_container, read_federation
from components.storage.container_access import ContainerAccess
from components.storage.sas import check_expiry
from components.storage.shared_files import shared_class
from components.storage.volumes import ContainerVolume
from components.workspace import Workspace
from config.data.output_names import CLUSTER_ID, KUBECONFIG, SAS
from config.schema.models import Placement, PlatformStack, Settings
from config.schema.workload import Member


class TeamSpace(Component):
    """A provider that impersonates a user of a team, and the team's volumes.

    The namespace already exists. PersistentVolumes are not namespaced, so the deployer creates them, not the user.
    """

    provider: kubernetes.Provider
    volumes: Mapping[str, BlobVolume]

    def __init__(
        self,
        name: str,
        *,
        team: str,
        user: str,
        prefix: str,
        containers: Mapping[str, ContainerAccess],
        kubeconfig: pulumi.Output[Any],
        cluster: pulumi.Output[Any],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        self.provider = kubernetes.Provider(
            name,
            kubeconfig=kubeconfig.apply(lambda text: as_user(text, user)),
            cluster_identifier=cluster,
            opts=self.child(),
        )
        self.volumes = {
            container: self._volume(f"{name}-{container}", access, team, prefix)
            for container, access in containers.items()
        }
        self.register_outputs({"namespace": team})

    def _volume(self, name: str, access: ContainerAccess, team: str, prefix: str) -> BlobVolume:
        return ContainerVolume(
            name, access, namespace=team, space=None, hooks=None, prefix=prefix, opts=self.child()
        ).volume


class SharedPlatform(Component):
    """Access to the other stack's cluster, and a namespace there with this stack's name.

    If all workloads run in teams' namespaces, the stack creates no namespace.
    """

    provider: kubernetes.Provider
    workspace: Workspace | None

    def __init__(
        self,
        name: str,
        settings: Settings,
        shared_platform: PlatformStack,
        *,
        kept_before: Collection[str] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Creates the namespace. It stays in the cluster if the last update had claims with files (`kept_before`)."""
        super().__init__(name, opts)
        self._kept_before = kept_before
        self.settings = settings
        self.shared_platform = shared_platform
        self._outputs = pulumi.StackReference(str(shared_platform.stack), opts=self.child())
        self.kubeconfig = self._outputs.require_output(KUBECONFIG)
        self.cluster_id = self._outputs.require_output(CLUSTER_ID)
        self.provider = kubernetes.Provider(
            "kubernetes",
            kubeconfig=self.kubeconfig,
            # A new cluster replaces the provider and its resources. New credentials do not replace them.
            cluster_identifier=self.cluster_id,
            opts=self.child(),
        )
        in_cluster = self.child(providers={"kubernetes": self.provider})
        platform_guard.register(settings.stack, self.child(provider=self.provider))
        containers = self._containers()
        for container, access in containers.items():
            check_expiry(access, users=settings.users(container), stack=str(shared_platform.stack))
        own = [placed for placed in settings.placements.values() if placed.options.member is None]
        self.workspace = self._workspace(own, containers, in_cluster) if own else None
        self._team_spaces = {
            placed.name: self._team_space(placed, member, containers, in_cluster)
            for placed in settings.placements.values()
            if (member := placed.options.member)
        }
        self._shared_class = shared_class(settings, (), self.child(provider=self.provider))
        self.register_outputs({"platform": str(shared_platform.stack)})

    def _workspace(
        self, own: Sequence[Placement[Any]], containers: Mapping[str, ContainerAccess], opts: pulumi.ResourceOptions
    ) -> Workspace:
        used = {container for placed in own for container in placed.options.containers}
        plain = self.shared_platform.output.federation
        return Workspace(
            "workspace",
            self.settings.stack,
            {name: access for name, access in containers.items() if name in used},
            None,
            federation=read_federation(plain) if plain else None,
            checks=() if self.settings.operators.failure_effect else None,
            keeps_files=self.settings.keeps_files or bool(self._kept_before),
            opts=opts,
        )

    def _team_space(
        self,
        placed: Placement[Any],
        member: Member,
        containers: Mapping[str, ContainerAccess],
        opts: pulumi.ResourceOptions,
    ) -> TeamSpace:
        used = placed.options.containers
        return TeamSpace(
            placed.name,
            team=member.team,
            user=member.user or self.settings.teams[member.team].users[0],
            prefix=f"{self._prefix}{placed.name}-",
            containers={name: access for name, access in containers.items() if name in used},
            kubeconfig=self.kubeconfig,
            cluster=self.cluster_id,
            opts=opts,
        )

    @property
    def _prefix(self) -> str:
        return f"{self.settings.stack}-"

    def _containers(self) -> dict[str, ContainerAccess]:
        sas = self._outputs.require_output(SAS)
        return {
            name: read_container(plain, sas[name]) for name, plain in self.shared_platform.output.containers.items()
        }

    def image(self, name: str) -> str:
        return images.own(
            name, login_server=self.shared_platform.output.login_server, mirror=self.settings.images.registry
        )

    def context_of(self, placed: Placement[Any]) -> WorkloadContext:
        if member := placed.options.member:
            space = self._team_spaces[placed.name]
            return self._context(
                provider=space.provider,
                namespace=member.team,
                service_account="default",
                volumes=space.volumes,
                prefix=self._prefix,
            )
        own = self.workspace
        if own is None:
            raise ValueError(f"{placed.name} is not a workload of this stack, so it has no namespace")
        return self._context(
            provider=self.provider, namespace=own.namespace, service_account=own.account, volumes=own.volumes
        )

    def _context(self, **place: Any) -> WorkloadContext:
        """Returns a context that waits for nothing, because the platform already exists."""
        return WorkloadContext(
            pools=gpu_pools(self.settings),
            rdma_resource=self.settings.rdma_resource,
            taint_effect=self.settings.operators.failure_effect,
            image=self.image,
            shared_class=self._shared_class,
            ready=[],
            **place,
        )
