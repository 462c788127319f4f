"""Builds pods with GPUs and RDMA, from a pool and a workload's additions."""

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
"""Annotations of resources that `pulumi up` should not wait for: jobs, Services without ready pods, claims.

Because of the first, Pulumi does not wait for deletions either, so an old Job could block a new one of the same name.
Because of the second, the API server deletes the old Job immediately and its pods afterwards.
"""
NOT_EVICTED = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
"""Annotation of pods that would lose work. Without it, if less than half of a node's GPUs are requested and other nodes
have capacity, the cluster autoscaler evicts pods of Jobs (cluster-autoscaler/FAQ.md in kubernetes/autoscaler).
"""
_SHM_FRACTION = 14
"""The node's memory divided by the size of /dev/shm. ND H100 v5 (1900 GiB) and H200 (1850 GiB) get at least the 128Gi
of the AKS health-check guide.
"""


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A pod's volume and its mount path."""

    name: str
    path: str
    source: Manifest
    """The volume's source in the pod spec, such as {"configMap": {...}}."""
    read_only: bool = False
    annotations: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Annotations of pods that mount the volume. They change with the volume's data, which replaces the pods."""
    service_account: pulumi.Input[str] | None = None
    """The only service account that can mount the volume, or None if all can."""

    def volume(self) -> Manifest:
        return {"name": self.name, **self.source}

    def mount(self) -> Manifest:
        return {"name": self.name, "mountPath": self.path, **({"readOnly": True} if self.read_only else {})}


@dataclass(frozen=True, kw_only=True)
class GpuPod:
    """A workload's pod on a GPU node. The method `template` adds everything that the hardware requires."""

    pool: GpuPool
    others: Sequence[GpuPool] = ()
    rdma_resource: str
    container: Manifest
    """Name, image, command and other fields, without devices, environment, mounts and rights."""
    variables: Mapping[str, str] = field(default_factory=dict)
    mounts: Sequence[Mount] = ()
    beside: Sequence[Manifest] = ()
    """Further containers, complete and without devices."""
    gpus: int | None = None
    """GPUs or slices to request; None requests the whole node with all HCAs. Pods on a part of a node have no RDMA."""
    topology: str = ""
    """Path of NCCL's topology file in the pod, or empty."""
    node_check: NodeCheck | None = None
    repeatable: bool = False
    """Whether the pod's work is cheap to repeat. The cluster autoscaler may then evict it from an underused node."""
    spec: Manifest = field(default_factory=dict)
    overrides: Manifest = field(default_factory=dict)

    def template(self) -> Manifest:
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
"""The capability to pin more memory for RDMA than the default of 64 KiB; no other privilege is needed."""


def pod_template(spec: Manifest, mounts: Sequence[Mount]) -> Manifest:
    """Returns the template of a pod with these volumes. Their annotations replace the pod when a volume's data changes.

    If the spec has no service account, the pod uses the account that the volumes require.
    """
    annotations = {name: value for mount in mounts for name, value in mount.annotations.items()}
    accounts = [mount.service_account for mount in mounts if mount.service_account is not None]
    account = {"serviceAccountName": accounts[0]} if accounts else {}
    metadata = {"metadata": {"annotations": annotations}} if annotations else {}
    return {**metadata, "spec": {**account, **spec, "volumes": [mount.volume() for mount in mounts]}}


def devices(pool: GpuPool, rdma_resource: str, gpus: int | None = None) -> Manifest:
    """Returns requests and limits for `gpus` GPUs, or for all devices of a node, with all slices of sliced GPUs.

    Without the RDMA resource, NCCL would use TCP.

    Quantities are text, as webhooks write them: numbers would always show as changed. No quantity is 0, because the GPU
    driver's upgrade waits for any pod with a GPU request (gpu-operator, cmd/gpu-operator/main.go, gpuPodSpecFilter).
    """
    if gpus == 0:
        return {}
    found = {GPU_RESOURCE: str(pool.gpus if gpus is None else gpus)}
    if gpus is None and pool.sku.infiniband:
        found[rdma_resource] = str(pool.sku.infiniband.hcas)
    return {"requests": dict(found), "limits": dict(found)}


def shared_memory(pool: GpuPool) -> Mount:
    """Returns a mount of RAM at /dev/shm, which counts as pod memory. The default of 64 MiB is too small for NCCL."""
    size = max(1, pool.sku.memory_gib // _SHM_FRACTION)
    return Mount(name="shm", path="/dev/shm", source={"emptyDir": {"medium": "Memory", "sizeLimit": f"{size}Gi"}})


def scratch(pool: GpuPool, path: str) -> Mount:
    """Returns the mount of the node's NVMe scratch, or of the pods' disk (slower and smaller) if the pool has none.

    The type of the scratch volume makes pods wait until scratch is mounted on the node.
    """
    if pool.scratch is None:
        return Mount(name="scratch", path=path, source={"emptyDir": {}})
    return Mount(name="scratch", path=path, source={"hostPath": {"path": pool.scratch, "type": "Directory"}})


def blob(name: str, volume: BlobVolume, path: str) -> Mount:
    """Returns a blob container's mount. The mount's annotations change with the container's SAS."""
    return Mount(
        name=name,
        path=path,
        source={"persistentVolumeClaim": {"claimName": volume.claim}},
        read_only=volume.read_only,
        annotations=volume.annotations,
        service_account=volume.service_account,
    )


def on_pools(*pools: GpuPool) -> Manifest:
    """Returns affinity to these agent pools. Each pool is one scale set and so one InfiniBand fabric."""
    here = {"key": AGENT_POOL_LABEL, "operator": "In", "values": [pool.agent_pool for pool in pools]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [here]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def environment(variables: Mapping[str, str]) -> list[Manifest]:
    """Returns a container's environment, ordered by name, so that equal settings produce equal manifests."""
    return [{"name": name, "value": value} for name, value in sorted(variables.items())]
