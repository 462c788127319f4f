"""What a platform offers to workloads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from config.data.scheduling import VOLCANO
from config.data.skus import VmSku
from config.schema.storage import SHARED_CLASS


@dataclass(frozen=True, kw_only=True)
class GpuPool:
    """A pool of GPU nodes, as those see it who put pods on it."""

    agent_pool: str
    """Its name in ARM, which its nodes carry as a label."""
    sku: VmSku
    taints: tuple[str, ...]
    min_nodes: int
    max_nodes: int
    shares: int = 1
    """As how many GPUs its nodes offer each of theirs: slices, or partitions."""
    scheduler: str = VOLCANO
    """What alone places pods on its nodes, as pods name it."""
    scratch: str | None = None
    """Folder on its nodes that lies on the file system made of all local NVMe disks; it is there once that is mounted.

    Pods mount it as a hostPath of type Directory, and so wait for it. None where nodes have no such scratch.
    """

    @property
    def gpus(self) -> int:
        """What a node offers as GPUs."""
        return self.sku.gpus * self.shares


@dataclass(frozen=True, kw_only=True)
class BlobVolume:
    """A blob container, as pods of one namespace mount it."""

    claim: pulumi.Input[str]
    """Name of the PersistentVolumeClaim."""
    read_only: bool
    """Mounts cannot write."""
    annotations: Mapping[str, pulumi.Input[str]]
    """For pod templates that mount it: they change when the SAS does, so that a new one reaches the mounts."""
    service_account: pulumi.Input[str] | None = None
    """Whose identity opens it; None where a SAS does, for pods of any account."""
    upload_secret: pulumi.Input[str] | None
    """Secret with keys `url` (of the container) and `sas` (rcwl), where the settings ask for `upload`."""


@dataclass(frozen=True, kw_only=True)
class SharedClass:
    """The StorageClass of shared files."""

    name: str
    made: Sequence[pulumi.Resource] = ()
    """What makes it, and its volumes: claims come after that, and go before it."""

    def claim(self, workload: str) -> str:
        """What the claim of a workload is called.

        Of another class it is another claim: none changes its class, nor goes while a pod has it.
        """
        return f"{workload}-{'nfs' if self.name == SHARED_CLASS else self.name}"


@dataclass(frozen=True, kw_only=True)
class WorkloadContext:
    """Everything that a workload may depend on."""

    provider: pulumi.ProviderResource
    namespace: pulumi.Input[str]
    service_account: pulumi.Input[str]
    """May read the pods of the namespace."""
    pools: Mapping[str, GpuPool]
    rdma_resource: str
    """Extended resource of the HCAs, as pods request it."""
    taint_effect: str | None = None
    """Of the taint that a check gives its node; None where no check may."""
    image: Callable[[str], str]
    """Reference of an image of `docker/`, by the name of its folder."""
    volumes: Mapping[str, BlobVolume]
    """Blob containers of the platform by name."""
    shared_class: SharedClass | None
    """None where a workload makes its own, of SMB."""
    prefix: str = ""
    """Of all names in a namespace that is a team's, where other stacks have theirs; else none."""
    ready: Sequence[pulumi.Resource]
    """Jobs depend on these: the registry of their images, the pools that they name, and the scheduler's webhook."""
    parent: pulumi.Resource | None = None
    """The component of the workload that is being deployed."""

    def child(self, *, other_type: str | None = None, **options: Any) -> pulumi.ResourceOptions:
        """Returns the options of a resource of the workload.

        With other settings the resource has `other_type`. Then one replaces the other, which can be deleted first.
        """
        aliases = [pulumi.Alias(type_=other_type)] if other_type else None
        return pulumi.ResourceOptions(parent=self.parent, provider=self.provider, aliases=aliases, **options)

    def job(self, needs: Iterable[pulumi.Resource], **options: Any) -> pulumi.ResourceOptions:
        """Options of a job of the workload, which follows these and all that is `ready` first.

        The spec of a job cannot be changed: it is replaced where it would be another, and deleted first, because its
        name stays.
        """
        return self.child(
            depends_on=[*self.ready, *needs], replace_on_changes=["spec"], delete_before_replace=True, **options
        )
