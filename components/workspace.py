"""Where workloads of one stack run: a namespace, their account in it, and the blob containers mounted there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pulumi
import pulumi_kubernetes as kubernetes

from components._base import Component
from components.container_access import ContainerAccess
from components.context import BlobVolume
from components.namespace import namespace
from components.operators.volcano import MpiAccount
from components.volumes import ContainerVolume


class Workspace(Component):
    """The namespace. Its pods may pin memory (IPC_LOCK) and mount scratch, which only the privileged level allows."""

    namespace: pulumi.Output[str]
    account: pulumi.Output[str]
    volumes: Mapping[str, BlobVolume]
    """By container."""

    def __init__(
        self,
        name: str,
        space_name: str,
        containers: Mapping[str, ContainerAccess],
        hooks: pulumi.ResourceHookBinding | None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        space = namespace(space_name, "privileged", parent=self, hooks=hooks)
        account = MpiAccount("mpi-account", namespace=space, opts=self.child())
        self.namespace = space.metadata["name"]
        self.account = account.name
        self.volumes = _Volumes(self, space_name, space, containers)
        self.register_outputs({"namespace": self.namespace})


class _Volumes(Mapping[str, BlobVolume]):
    """Volumes in a namespace, each made when first asked for: no namespace holds a SAS that nobody there uses."""

    def __init__(
        self,
        parent: Component,
        space_name: str,
        space: kubernetes.core.v1.Namespace,
        containers: Mapping[str, ContainerAccess],
    ) -> None:
        self._parent, self._space_name, self._space, self._containers = parent, space_name, space, containers
        self._made: dict[str, BlobVolume] = {}

    def __getitem__(self, container: str) -> BlobVolume:
        if container not in self._made:
            access = self._containers[container]
            made = ContainerVolume(
                container, access, namespace=self._space_name, needs=[self._space], opts=self._parent.child()
            )
            self._made[container] = made.volume
        return self._made[container]

    def __iter__(self) -> Iterator[str]:
        return iter(self._containers)

    def __len__(self) -> int:
        return len(self._containers)
