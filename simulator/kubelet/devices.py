"""Which GPUs and HCAs of a node a pod has, and what a node offers: the device manager of the simulated kubelet."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from config.facts.scheduling import GPU_RESOURCE
from diagnosis.cluster import Object, has_ended
from diagnosis.nodes import allocatable, requested
from simulator.world.hardware import Hca, NodeHardware

Allocation = dict[str, list[Any]]
_REGISTERED = "simulator/device-plugins"
"""Node annotation with the resources that plugins have registered: a real kubelet's `kubelet_internal_checkpoint`."""


class Unavailable(Exception):
    """A pod's devices are gone since it was scheduled; the message is the device manager's."""


@dataclass(frozen=True)
class _Holding:
    node: str
    wanted: Mapping[str, int]
    devices: Allocation


class DeviceManager:
    """Hands out devices to pods of a node, lowest first, and takes them back when the pod has ended."""

    def __init__(self, pods: Callable[[], Iterable[Object]]) -> None:
        """`pods` gives all there are now."""
        self._pods = pods
        self._held: dict[str, _Holding] = {}  # by pod uid
        self._lock = threading.Lock()

    def allocate(
        self, pod: Object, hardware: NodeHardware, offered: Mapping[str, int], *, runs: bool = False
    ) -> Allocation:
        """`offered` is what the device plugins give now, 0 of one that is gone; other resources are let pass.

        A pod that `runs` keeps what it has: the simulator was started again. What ended pods held is taken back first:
        the scheduler has given it away as soon as it saw their end. Raises Unavailable, as `devicesToAllocate` does
        (pkg/kubelet/cm/devicemanager/manager.go of Kubernetes 1.35.4).
        """
        uid, node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
        with self._lock:
            if uid not in self._held:
                self._release()
                wanted = {name: count for name, count in requested(pod).items() if name in offered}
                if not runs:
                    self._check(node, hardware, wanted, offered)
                gpus = [gpu.index for gpu in hardware.gpus if runs or gpu.healthy]
                hcas = [hca.name for hca in hardware.hcas if hca.link_layer == "InfiniBand" and (runs or _works(hca))]
                hca_count = sum(count for name, count in wanted.items() if name != GPU_RESOURCE)
                shares = offered.get(GPU_RESOURCE, 0) // max(1, sum(gpu.healthy for gpu in hardware.gpus))
                devices: Allocation = {
                    "gpus": self._shares(node, gpus, max(1, shares))[: wanted.get(GPU_RESOURCE, 0)],
                    "hcas": self._free(node, "hcas", hcas)[:hca_count],
                }
                self._held[uid] = _Holding(node, wanted, devices)
            return self._held[uid].devices

    def held(self) -> dict[str, Allocation]:
        """What pods that have not ended hold, by their uid."""
        with self._lock:
            self._release()
            return {uid: holding.devices for uid, holding in self._held.items()}

    def _check(self, node: str, hardware: NodeHardware, wanted: Mapping[str, int], offered: Mapping[str, int]) -> None:
        here = [holding for holding in self._held.values() if holding.node == node]
        broken_gpus = {gpu.index for gpu in hardware.gpus if not gpu.healthy}
        broken_hcas = {hca.name for hca in hardware.hcas if not _works(hca)}
        for name, count in wanted.items():
            if not offered[name]:
                raise Unavailable(f"no healthy devices present; cannot allocate unhealthy devices {name}")
            kind, broken = ("gpus", broken_gpus) if name == GPU_RESOURCE else ("hcas", broken_hcas)
            in_use = sum(holding.wanted.get(name, 0) for holding in here)
            # What is in use and broken is not offered: it counts once.
            both = sum(len(broken.intersection(h.devices[kind])) for h in here if name in h.wanted)
            if (available := offered[name] - in_use + both) < count:
                raise Unavailable(
                    f"requested number of devices unavailable for {name}. Requested: {count}, Available: {available}"
                )

    def _release(self) -> None:
        alive = {pod["metadata"]["uid"] for pod in self._pods() if not has_ended(pod)}
        self._held = {uid: holding for uid, holding in self._held.items() if uid in alive}

    def _shares(self, node: str, gpus: Iterable[int], shares: int) -> list[int]:
        """Shares of GPUs that nobody holds, each as its GPU: those of the GPU of which fewest are held come first.

        As NVIDIA's device plugin hands out slices (k8s-device-plugin, internal/rm/allocate.go, distributedAlloc).
        """
        held = Counter(gpu for each in self._held.values() if each.node == node for gpu in each.devices["gpus"])
        return [gpu for _, gpu in sorted((share, gpu) for gpu in gpus for share in range(held[gpu], shares))]

    def _free(self, node: str, kind: str, devices: Iterable[Any]) -> list[Any]:
        taken = {device for held in self._held.values() if held.node == node for device in held.devices[kind]}
        return [device for device in devices if device not in taken]


def status_patch(node: Object, offered: Mapping[str, int]) -> Object | None:
    """The node status patch that makes it offer these extended resources; None where it does already.

    A resource whose plugin went away stays with 0, as a real kubelet leaves it; one that no plugin has registered, such
    as NFD's, is not its own.
    """
    status, before = node.get("status", {}), _registered(node)
    wanted = {name: str(offered.get(name, 0)) for name in sorted(before | offered.keys())}
    if before == wanted.keys() and all(
        status.get(kind, {}).get(name) == value
        for kind in ("capacity", "allocatable")
        for name, value in wanted.items()
    ):
        return None
    annotations = {_REGISTERED: ",".join(wanted)}
    return {"metadata": {"annotations": annotations}, "status": {"capacity": wanted, "allocatable": wanted}}


def plugin_resources(node: Object) -> dict[str, int]:
    """What a node has allocatable by its device plugins, those included that are gone."""
    return {name: allocatable(node, name) for name in _registered(node)}


def _registered(node: Object) -> set[str]:
    names = node["metadata"].get("annotations", {}).get(_REGISTERED, "")
    return {name for name in names.split(",") if name}


def _works(hca: Hca) -> bool:
    return hca.state == "ACTIVE"
