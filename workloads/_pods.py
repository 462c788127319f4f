"""Pure builders of the pods that use GPUs and RDMA."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from components.context import GpuPool
from components.scheduling import AGENT_POOL_LABEL, tolerations

Manifest = dict[str, Any]

GPU_RESOURCE = "nvidia.com/gpu"
_SHM_FRACTION = 16


@dataclass(frozen=True, kw_only=True)
class Mount:
    """One volume of a pod and where its container sees it."""

    name: str
    path: str
    source: Manifest
    """The volume's source as the pod spec has it, for example {"configMap": {...}}."""
    read_only: bool = False

    def volume(self) -> Manifest:
        """The entry of the pod's `volumes`."""
        return {"name": self.name, **self.source}

    def mount(self) -> Manifest:
        """The entry of the container's `volumeMounts`."""
        return {"name": self.name, "mountPath": self.path, **({"readOnly": True} if self.read_only else {})}


def gpu_pod_spec(*, pool: GpuPool, rdma_resource: str, container: Manifest, mounts: Iterable[Mount] = ()) -> Manifest:
    """A pod that takes a whole node of the pool: every GPU, every HCA, shared memory in RAM.

    `container` has name, image, command and the like; resources, mounts and the security context are added to it.
    """
    every_mount = [*mounts, shared_memory(pool)]
    return {
        "restartPolicy": "Never",
        "tolerations": tolerations(pool.taints),
        "affinity": one_pool(pool),
        "containers": [
            container
            | {
                "resources": whole_node(pool, rdma_resource),
                "volumeMounts": [mount.mount() for mount in every_mount],
                # RDMA pins memory, which the default limit of 64 KiB forbids; nothing else needs to be privileged.
                "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
            }
        ],
        "volumes": [mount.volume() for mount in every_mount],
    }


def whole_node(pool: GpuPool, rdma_resource: str) -> Manifest:
    """Requests and limits for all devices of a node. Without the RDMA resource NCCL would silently use TCP.

    Quantities are text, as webhooks write them back: a number would show as changed for ever.
    """
    devices = {GPU_RESOURCE: str(pool.sku.gpus)}
    if pool.sku.infiniband:
        devices[rdma_resource] = str(pool.sku.infiniband.hcas)
    return {"requests": dict(devices), "limits": dict(devices)}


def shared_memory(pool: GpuPool) -> Mount:
    """/dev/shm in RAM: the runtime's default of 64 MiB is too small for NCCL. It counts as memory of the pod."""
    size = max(1, pool.sku.memory_gib // _SHM_FRACTION)
    return Mount(name="shm", path="/dev/shm", source={"emptyDir": {"medium": "Memory", "sizeLimit": f"{size}Gi"}})


def one_pool(pool: GpuPool) -> Manifest:
    """Affinity to the nodes of exactly one agent pool, which is one scale set and so one InfiniBand fabric."""
    here = {"key": AGENT_POOL_LABEL, "operator": "In", "values": [pool.agent_pool]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [here]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def environment(variables: dict[str, str]) -> list[Manifest]:
    """Environment of a container, ordered by name so that equal settings make equal manifests."""
    return [{"name": name, "value": value} for name, value in sorted(variables.items())]
