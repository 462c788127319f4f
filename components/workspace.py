"""Where workloads of one stack run: a namespace, their account in it, and the blob containers mounted there."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

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
    volumes: dict[str, BlobVolume]
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
        self.volumes = {
            container: ContainerVolume(container, access, namespace=space_name, needs=[space], opts=self.child()).volume
            for container, access in containers.items()
        }
        self.register_outputs({"namespace": self.namespace})
