"""Which GPUs and HCAs of a node a pod has, and what a node offers: the device manager of the simulated kubelet."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from simulator.kubelet.status import has_ended
from simulator.world.hardware import NodeHardware

Object = dict[str, Any]
Allocation = dict[str, list[Any]]
GPU = "nvidia.com/gpu"


def requested(pod: Object) -> dict[str, int]:
    """Extended resources that a pod holds: the larger of its init containers' and the sum of its containers'."""
    spec = pod["spec"]
    total: dict[str, int] = {}
    for container in spec["containers"]:
        for name, count in _limits(container).items():
            total[name] = total.get(name, 0) + count
    for container in spec.get("initContainers", []):
        for name, count in _limits(container).items():
            total[name] = max(total.get(name, 0), count)
    return total


class DeviceManager:
    """Hands out devices to pods of a node, lowest first, and takes them back when the pod has ended."""

    def __init__(self, pods: Callable[[], Iterable[Object]]) -> None:
        """`pods` gives all there are now."""
        self._pods = pods
        self._held: dict[str, Allocation] = {}  # by pod uid
        self._node: dict[str, str] = {}
        self._lock = threading.Lock()

    def allocate(self, pod: Object, hardware: NodeHardware, is_rdma: Callable[[str], bool]) -> Allocation:
        """`is_rdma` tells which resources are the HCAs of an SR-IOV or shared device plugin.

        What ended pods held is taken back first: the scheduler has given it away as soon as it saw their end.
        """
        uid, node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
        with self._lock:
            if uid not in self._held:
                self._release()
                wanted = requested(pod)
                hcas = sum(count for name, count in wanted.items() if is_rdma(name))
                free_gpus = [g.index for g in hardware.gpus if g.healthy and g.index not in self._taken(node, "gpus")]
                infiniband = [h.name for h in hardware.hcas if h.link_layer == "InfiniBand" and h.state == "ACTIVE"]
                free_hcas = [name for name in infiniband if name not in self._taken(node, "hcas")]
                self._held[uid] = {"gpus": free_gpus[: wanted.get(GPU, 0)], "hcas": free_hcas[:hcas]}
                self._node[uid] = node
            return self._held[uid]

    def held(self) -> dict[str, Allocation]:
        """What pods that have not ended hold, by their uid."""
        with self._lock:
            self._release()
            return dict(self._held)

    def _release(self) -> None:
        alive = {pod["metadata"]["uid"] for pod in self._pods() if not has_ended(pod)}
        for uid in [uid for uid in self._held if uid not in alive]:
            del self._held[uid], self._node[uid]

    def _taken(self, node: str, kind: str) -> set[Any]:
        return {device for uid, held in self._held.items() if self._node[uid] == node for device in held[kind]}


def status_patch(node: Object, offered: Mapping[str, int]) -> Object | None:
    """The node status patch that makes it offer these extended resources; None where it does already.

    A resource whose plugin went away stays with 0, as a real kubelet leaves it.
    """
    status = node.get("status", {})
    known = {name for name in status.get("capacity", {}) if "/" in name and not name.startswith("hugepages")}
    wanted = {name: str(offered.get(name, 0)) for name in known | set(offered)}
    if all(
        status.get(kind, {}).get(name) == value
        for kind in ("capacity", "allocatable")
        for name, value in wanted.items()
    ):
        return None
    return {"status": {"capacity": wanted, "allocatable": wanted}}


def _limits(container: Object) -> dict[str, int]:
    resources = container.get("resources", {})
    merged = {**resources.get("requests", {}), **resources.get("limits", {})}
    return {name: int(count) for name, count in merged.items() if "/" in name}
