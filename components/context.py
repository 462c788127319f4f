"""The interface that a platform offers to workloads."""

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
    """A pool of GPU nodes for workloads."""

    agent_pool: str
    """The pool's ARM name, which is also a label of its nodes."""
    sku: VmSku
    taints: tuple[str, ...]
    min_nodes: int
    max_nodes: int
    shares: int = 1
    scheduler: str = VOLCANO
    scratch: str | None = None
    """The folder on the file system of all local NVMe disks, or None if nodes have no such scratch.

    It exists once the disks are mounted; pods wait for it (hostPath of type Directory).
    """

    @property
    def gpus(self) -> int:
        return self.sku.gpus * self.shares


@dataclass(frozen=True, kw_only=True)
class BlobVolume:
    """A blob container, as pods of one namespace mount it."""

    claim: pulumi.Input[str]
    read_only: bool
    annotations: Mapping[str, pulumi.Input[str]]
    """Annotations for templates of pods that mount it. A new SAS changes them, which replaces the pods."""
    service_account: pulumi.Input[str] | None = None
    """The service account with the identity that opens the container, or None if a SAS opens it for all pods."""
    upload_secret: pulumi.Input[str] | None
    """The Secret with the keys `url` (of the container) and `sas` (permissions rcwl), or None without `upload`."""


@dataclass(frozen=True, kw_only=True)
class SharedClass:
    name: str
    made: Sequence[pulumi.Resource] = ()
    """The resources that create the class and its volumes. Claims depend on them and are deleted before them."""

    def claim(self, workload: str) -> str:
        """Returns the name of a workload's claim.

        The name depends on the class: a claim cannot change its class, and cannot be deleted while a pod uses it.
        """
        return f"{workload}-{'nfs' if self.name == SHARED_CLASS else self.name}"


@dataclass(frozen=True, kw_only=True)
class WorkloadContext:
    """The parts of the platform that a workload may depend on."""

    provider: pulumi.ProviderResource
    namespace: pulumi.Input[str]
    service_account: pulumi.Input[str]
    """The account that may read the namespace's pods."""
    pools: Mapping[str, GpuPool]
    rdma_resource: str
    taint_effect: str | None = None
    """The effect of the taint that a failed check adds to its node, or None if checks add none."""
    image: Callable[[str], str]
    """Returns the reference of an image of `docker/`, given its folder's name."""
    volumes: Mapping[str, BlobVolume]
    shared_class: SharedClass | None
    """The class of shared files, or None if each workload creates its own SMB class."""
    prefix: str = ""
    """The prefix of names in a team's namespace, which other stacks share; otherwise empty."""
    ready: Sequence[pulumi.Resource]
    """The dependencies of jobs: the registry of their images, the pools that they name, the scheduler's webhook."""
    parent: pulumi.Resource | None = None

    def child(self, *, other_type: str | None = None, **options: Any) -> pulumi.ResourceOptions:
        """Returns the options of a resource of the workload.

        `other_type` is the type that this resource has with other settings. An alias makes Pulumi replace one type by
        the other, so that it can delete the old resource first.
        """
        aliases = [pulumi.Alias(type_=other_type)] if other_type else None
        return pulumi.ResourceOptions(parent=self.parent, provider=self.provider, aliases=aliases, **options)

    def job(self, needs: Iterable[pulumi.Resource], **options: Any) -> pulumi.ResourceOptions:
        """Returns the options of a job of the workload, which waits for `needs` and everything in `ready`.

        A job's spec is immutable, so a change replaces the job. Pulumi deletes the old job first, because both have the
        same name.
        """
        return self.child(
            depends_on=[*self.ready, *needs], replace_on_changes=["spec"], delete_before_replace=True, **options
        )
