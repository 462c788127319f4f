"""Where a workload runs in a team's namespace, beside those of other stacks, as a user of that team."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components._base import Component
from components.container_access import ContainerAccess
from components.context import BlobVolume
from components.kubeconfig import as_user
from components.volumes import ContainerVolume


class TeamSpace(Component):
    """A way in that impersonates the user, who so gets no more than the team may have; and volumes.

    The namespace is there. PersistentVolumes are the cluster's, and so made as whoever deploys, with what they need.
    """

    provider: kubernetes.Provider
    volumes: Mapping[str, BlobVolume]
    """By container."""

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
        """`name` is the workload's; `prefix` is of names in the namespace; `containers` are mounted, each by a SAS."""
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
