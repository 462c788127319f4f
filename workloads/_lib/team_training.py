"""Common parts of trainings in teams: checks of hardware, quota and storage, and checkpoints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from components.context import WorkloadContext
from config.data.skus import VmSku
from config.data.storage_classes import AKS_SHARED_CLASS
from config.problems.errors import Problem
from config.problems.fixes import Path, by_hand, set_command
from config.schema.models import Placement
from config.schema.workload import Candidate
from workloads._lib.base import Run
from workloads._lib.claims import kept_claim
from workloads._lib.containers import container_problems
from workloads._lib.pods import Mount, blob
from workloads._lib.team import TeamOptions, name_of
from workloads._lib.training import GB

CHECKPOINTS, DATA = "/checkpoints", "/data"
USABLE = 0.92
_LEAST_GIB = 100
"""The minimum size of an NFS share."""

Options = TypeVar("Options", bound=TeamOptions)


@dataclass(frozen=True, kw_only=True)
class TrainingRun(Run[Options]):
    name: str
    namespace: str
    checkpoints: Mount
    data: Mount | None = None

    @classmethod
    def in_team(
        cls,
        context: WorkloadContext,
        placement: Placement[Any],
        workload: str,
        *,
        size: float,
        **more: Any,
    ) -> Self:
        """Returns the training that the settings describe. `size` is the bytes of all checkpoints."""
        options, name = placement.options, name_of(workload, context.prefix)
        data = options.data_container
        return cls.placed(
            context,
            placement,
            workload,
            name=name,
            namespace=str(options.team),
            checkpoints=checkpoints(context, workload, name, options.checkpoint_container, size),
            data=blob("data", context.volumes[data], DATA) if data else None,
            **more,
        )

    @property
    def gpus(self) -> int:
        return self.options.gpus_on(self.pool.sku)

    @property
    def output(self) -> str:
        return f"{CHECKPOINTS}/{self.namespace}/{self.name}"


def usable_bytes(sku: VmSku) -> float:
    """Returns how many bytes of a GPU's nominal memory a training can use."""
    return USABLE * sku.gpu_memory_gb * GB


def batch_problems(
    workload: str, batch: int, unit: str, options: TeamOptions, candidate: Candidate
) -> Iterator[Problem]:
    sku = candidate.pool.sku
    gpus = candidate.nodes * options.gpus_on(sku)
    if batch % gpus and options.gpus_on(sku) <= sku.gpus:
        near = sorted({max(gpus, batch // gpus * gpus), (batch // gpus + 1) * gpus})
        nearest = min(near, key=lambda each: abs(each - batch))
        where: Path = ("workloadOptions", workload, "batch")
        what = f"is {batch} {unit}, which {gpus} GPUs cannot share equally"
        yield Problem(where, what, " or ".join(map(str, near)), set_command(where, nearest))


def storage_problems(
    workload: str, data: str | None, checkpoints: str | None, options: TeamOptions, candidate: Candidate
) -> Iterator[Problem]:
    """Yields problems with containers and shared files. In a team's namespace, containers need a SAS: identities only
    work in the stack's namespace.
    """
    if data:
        yield from container_problems(workload, candidate, "dataContainer", data)
    if checkpoints:
        yield from container_problems(workload, candidate, "checkpointContainer", checkpoints, writes=True)
    elif candidate.on_shared_platform and not candidate.shared_class:
        where: Path = ("workloadOptions", workload, "checkpointContainer")
        path: Path = ("storage", "sharedClass")
        what = "is not set, and the platform has no StorageClass of shared files for checkpoints"
        known = ", ".join(candidate.storage.by_container()) or "none is set"
        allowed = f"a container of the platform ({known}), or storage.sharedClass"
        yield Problem(where, what, allowed, set_command(path, AKS_SHARED_CLASS))
    there = candidate.storage.by_container()
    for name in options.containers:
        account = there.get(name)
        if account and account.settings.auth == "identity":
            way: Path = (*account.path, "auth")
            what = f"is identity, which only works in the stack's namespace, but {workload} runs in a team's namespace"
            yield Problem(way, what, f"sas, or a container other than {name}", by_hand(way))


def claim_gib(size: float) -> int:
    return max(_LEAST_GIB, math.ceil(size / 2**30))


def checkpoints(context: WorkloadContext, workload: str, name: str, container: str | None, size: float) -> Mount:
    """Returns the mount of the container, or of a new claim for `size` bytes of shared files.

    `workload` begins the claim's name in the stack, and `name` begins the claim's name in the cluster.
    """
    if container:
        return blob("checkpoints", context.volumes[container], CHECKPOINTS)
    shared = context.shared_class
    if shared is None:
        raise ValueError("the platform has no StorageClass of shared files")
    claim = kept_claim(
        f"{workload}-checkpoints",
        shared.claim(f"{name}-checkpoints"),
        shared.name,
        claim_gib(size),
        context,
        awaited=False,
        after=shared.made,
    )
    source = {"persistentVolumeClaim": {"claimName": claim.metadata["name"]}}
    return Mount(name="checkpoints", path=CHECKPOINTS, source=source)
