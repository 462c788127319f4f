"""The one builder of pods that use GPUs and RDMA: pure functions of a pool and what a workload adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pulumi

from components.context import BlobVolume, GpuPool
from config.data.scheduling import AGENT_POOL_LABEL, GPU_RESOURCE
from config.schema.overrides import merge
from k8s.scheduling import tolerations

if TYPE_CHECKING:
    from workloads._lib.node_check import NodeCheck

Manifest = dict[str, Any]

NOT_AWAITED = {"pulumi.com/skipAwait": "true", "pulumi.com/deletionPropagationPolicy": "background"}
"""Annotations of what may take longer than `pulumi up` should: jobs, Services whose pods are not ready yet, claims.

The first also keeps Pulumi from waiting until a Job is deleted, and a successor of that name would find it there still:
so it goes at once, and its pods after it.
"""
NOT_EVICTED = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
"""Annotation of pods that lose work. Without it, the cluster autoscaler evicts pods of Jobs from nodes with less than
half of their GPUs requested, if other nodes have room (cluster-autoscaler/FAQ.md in kubernetes/autoscaler).
"""
_SHM_FRACTION = 14
"""Part of a node's memory: at least the AKS health-check guide's 128Gi on ND H100 v5 (1900 GiB) and H200 (1850 GiB)."""


@dataclass(frozen=True, kw_only=True)
class Mount:
    """One volume of a pod and where its container sees it."""

    name: str
    path: str
    source: Manifest
    """The volume's source as the pod spec has it, for example {"configMap": {...}}."""
    read_only: bool = False
    annotations: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Of pods that mount it: they change when what is mounted does, so that pods are replaced by ones that see it."""
    service_account: pulumi.Input[str] | None = None
    """Under which alone pods can mount it, if any."""

    def volume(self) -> Manifest:
        """The entry of the pod's `volumes`."""
        return {"name": self.name, **self.source}

    def mount(self) -> Manifest:
        """The entry of the container's `volumeMounts`."""
        return {"name": self.name, "mountPath": self.path, **({"readOnly": True} if self.read_only else {})}


@dataclass(frozen=True, kw_only=True)
class GpuPod:
    """A pod on a node of a GPU pool, as a workload describes it; `template` adds all that the hardware asks for."""

    pool: GpuPool
    others: Sequence[GpuPool] = ()
    """More pools whose nodes may take it."""
    rdma_resource: str
    container: Manifest
    """Name, image, command and the like; devices, environment, mounts and rights are added."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment of the container."""
    mounts: Sequence[Mount] = ()
    beside: Sequence[Manifest] = ()
    """More containers, whole ones, without devices."""
    gpus: int | None = None
    """GPUs to take, or slices of them; None takes the whole node with all HCAs. Part of a node comes without RDMA."""
    topology: str = ""
    """Where it sees NCCL's topology file, if it does."""
    node_check: NodeCheck | None = None
    """What checks its node before it begins, if anything."""
    repeatable: bool = False
    """Whether its work is cheap to repeat: the cluster autoscaler may then evict it from a node with little load."""
    spec: Manifest = field(default_factory=dict)
    """More of the pod's spec: service account, subdomain, restart policy."""
    overrides: Manifest = field(default_factory=dict)
    """The workload's `podOverrides`, merged last."""

    def template(self) -> Manifest:
        """The pod template: {"metadata": ..., "spec": ...}."""
        mounts = [*self.mounts, shared_memory(self.pool)]
        added = {
            **({"env": environment(self.variables)} if self.variables else {}),
            "resources": devices(self.pool, self.rdma_resource, self.gpus),
            "volumeMounts": [mount.mount() for mount in mounts],
            **({} if self.gpus is not None else {"securityContext": RDMA_RIGHTS}),
        }
        spec = {
            "restartPolicy": "Never",
            "schedulerName": self.pool.scheduler,
            "tolerations": tolerations(taint for pool in (self.pool, *self.others) for taint in pool.taints),
            "affinity": on_pools(self.pool, *self.others),
            "containers": [merge(added, self.container), *self.beside],
            **self.spec,
        }
        template = pod_template(spec, mounts)
        if not self.repeatable:
            template = merge({"metadata": {"annotations": NOT_EVICTED}}, template)
        if self.node_check is not None:
            template = self.node_check.added(template, self.pool, self.gpus, self.topology)
        overridden: Manifest = merge(template, self.overrides)
        return overridden


RDMA_RIGHTS = {"capabilities": {"add": ["IPC_LOCK"]}}
"""RDMA pins memory, which the default limit of 64 KiB forbids; nothing else needs to be privileged."""


def pod_template(spec: Manifest, mounts: Sequence[Mount]) -> Manifest:
    """The template of a pod with these volumes, annotated so that another content is another pod.

    It runs under the service account that they need, unless it has one of its own.
    """
    annotations = {name: value for mount in mounts for name, value in mount.annotations.items()}
    accounts = [mount.service_account for mount in mounts if mount.service_account is not None]
    account = {"serviceAccountName": accounts[0]} if accounts else {}
    metadata = {"metadata": {"annotations": annotations}} if annotations else {}
    return {**metadata, "spec": {**account, **spec, "volumes": [mount.volume() for mount in mounts]}}


def devices(pool: GpuPool, rdma_resource: str, gpus: int | None = None) -> Manifest:
    """Requests and limits of `gpus` GPUs, or of all devices of a node: of sliced GPUs all slices, and nobody shares.

    Without the RDMA resource NCCL would use TCP.

    Quantities are text, as webhooks write them back: a number would show as changed for ever. None of them is 0: by
    such a request a pod counts as one that uses GPUs, and the GPU driver's upgrade would wait for it to go
    (gpu-operator, cmd/gpu-operator/main.go, gpuPodSpecFilter).
    """
    if gpus == 0:
        return {}
    found = {GPU_RESOURCE: str(pool.gpus if gpus is None else gpus)}
    if gpus is None and pool.sku.infiniband:
        found[rdma_resource] = str(pool.sku.infiniband.hcas)
    return {"requests": dict(found), "limits": dict(found)}


def shared_memory(pool: GpuPool) -> Mount:
    """/dev/shm in RAM: the runtime's default of 64 MiB is too small for NCCL. It counts as memory of the pod."""
    size = max(1, pool.sku.memory_gib // _SHM_FRACTION)
    return Mount(name="shm", path="/dev/shm", source={"emptyDir": {"medium": "Memory", "sizeLimit": f"{size}Gi"}})


def scratch(pool: GpuPool, path: str) -> Mount:
    """The node's NVMe scratch, whose type makes pods wait until it is mounted; without it, the disk that has its pods.

    The latter is slower and smaller, but VM sizes without local NVMe disks have nothing else.
    """
    if pool.scratch is None:
        return Mount(name="scratch", path=path, source={"emptyDir": {}})
    return Mount(name="scratch", path=path, source={"hostPath": {"path": pool.scratch, "type": "Directory"}})


def blob(name: str, volume: BlobVolume, path: str) -> Mount:
    """A blob container; its annotations change with its SAS."""
    return Mount(
        name=name,
        path=path,
        source={"persistentVolumeClaim": {"claimName": volume.claim}},
        read_only=volume.read_only,
        annotations=volume.annotations,
        service_account=volume.service_account,
    )


def on_pools(*pools: GpuPool) -> Manifest:
    """Affinity to the nodes of these agent pools alone; of one, which is one scale set and so one InfiniBand fabric."""
    here = {"key": AGENT_POOL_LABEL, "operator": "In", "values": [pool.agent_pool for pool in pools]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [here]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def environment(variables: Mapping[str, str]) -> list[Manifest]:
    """Environment of a container, ordered by name so that equal settings make equal manifests."""
    return [{"name": name, "value": value} for name, value in sorted(variables.items())]
