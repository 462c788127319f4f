"""The device manager: the GPUs and HCAs of each pod, and the devices that a node offers."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from config.data.scheduling import GPU_RESOURCE
from k8s.objects import Object, has_ended
from k8s.quantities import canonical, count
from k8s.resources import allocatable, device_requests
from simulator.world.hardware import Hca, NodeHardware

Allocation = dict[str, list[Any]]
_REGISTERED = "simulator/device-plugins"
"""The node annotation with the resources of plugins: `name`, or `name@<stop time>` if the plugin has stopped."""
_GRACE_S = 300
"""The kubelet's endpointStopGracePeriod in seconds."""


class Unavailable(Exception):
    """A pod's devices became unavailable after the pod was scheduled. The text is from the device manager."""


@dataclass(frozen=True)
class _Holding:
    node: str
    wanted: Mapping[str, int]
    devices: Allocation


class DeviceManager:
    """Assigns devices of nodes to pods, lowest number first."""

    def __init__(self, pods: Callable[[], Iterable[Object]]) -> None:
        self._pods = pods
        self._held: dict[str, _Holding] = {}  # by pod uid
        self._lock = threading.Lock()

    def allocate(
        self, pod: Object, hardware: NodeHardware, offered: Mapping[str, int], *, runs: bool = False
    ) -> Allocation:
        """Returns the pod's devices. First frees the devices of ended pods.

        `offered` is the number of devices by resource, or 0 if the plugin has stopped. Other resources are ignored. If
        the pod already `runs`, its devices are not checked. Otherwise, the errors (Unavailable) are those of
        `devicesToAllocate` (pkg/kubelet/cm/devicemanager/manager.go of Kubernetes 1.35.4).
        """
        uid, node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
        with self._lock:
            if uid not in self._held:
                self._release()
                wanted = {name: count for name, count in device_requests(pod).items() if name in offered}
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
        with self._lock:
            self._release()
            return {uid: holding.devices for uid, holding in self._held.items()}

    def _check(self, node: str, hardware: NodeHardware, wanted: Mapping[str, int], offered: Mapping[str, int]) -> None:
        here = [holding for holding in self._held.values() if holding.node == node]
        broken_gpus = {gpu.index for gpu in hardware.gpus if not gpu.healthy}
        broken_hcas = {hca.name for hca in hardware.hcas if not _works(hca)}
        for name, total in wanted.items():
            if not offered[name]:
                raise Unavailable(f"no healthy devices present; cannot allocate unhealthy devices {name}")
            kind, broken = ("gpus", broken_gpus) if name == GPU_RESOURCE else ("hcas", broken_hcas)
            in_use = sum(holding.wanted.get(name, 0) for holding in here)
            # broken devices in use are missing in `offered` and also counted in `in_use`
            both = sum(len(broken.intersection(h.devices[kind])) for h in here if name in h.wanted)
            if (available := offered[name] - in_use + both) < total:
                raise Unavailable(
                    f"requested number of devices unavailable for {name}. Requested: {total}, Available: {available}"
                )

    def _release(self) -> None:
        alive = {pod["metadata"]["uid"] for pod in self._pods() if not has_ended(pod)}
        self._held = {uid: holding for uid, holding in self._held.items() if uid in alive}

    def _shares(self, node: str, gpus: Iterable[int], shares: int) -> list[int]:
        """Returns the GPU index of each free share. Shares of the least used GPU come first.

        Source: k8s-device-plugin, internal/rm/allocate.go, distributedAlloc.
        """
        held = Counter(gpu for each in self._held.values() if each.node == node for gpu in each.devices["gpus"])
        return [gpu for _, gpu in sorted((share, gpu) for gpu in gpus for share in range(held[gpu], shares))]

    def _free(self, node: str, kind: str, devices: Iterable[Any]) -> list[Any]:
        taken = {device for held in self._held.values() if held.node == node for device in held.devices[kind]}
        return [device for device in devices if device not in taken]


def status_patch(
    node: Object,
    offered: Mapping[str, int],
    listed: Mapping[str, int] | None = None,
    now: float = 1.0,
    *,
    booted: bool = False,
) -> Object | None:
    """Returns the node's status patch for its device plugins, or None if nothing changed.

    The capacity includes unhealthy devices; the allocatable amount does not. A restarted plugin does not list lost
    devices. If a plugin stops, its devices are unhealthy, and after five minutes their capacity is 0 (GetCapacity of
    pkg/kubelet/cm/devicemanager/manager.go and MachineInfo of pkg/kubelet/nodestatus/setters.go, Kubernetes 1.35.4).
    Resources that no plugin has registered, such as resources of NFD's rules, do not change.

    Args:
        node: The node from the API server.
        offered: Healthy devices of running plugins, by resource.
        listed: The devices that the plugins would offer without hardware faults. By default, equal to `offered`.
        now: Seconds since 1970.
        booted: Whether the node and its plugins have restarted since the last call.
    """
    before, after = _registered(node), dict[str, float | None]()
    if booted:
        before = {name: since or now for name, since in before.items()}
    amounts: dict[str, dict[str, str]] = {"capacity": {}, "allocatable": {}}
    status = node.get("status", {})
    for name in sorted(before | offered.keys()):
        capacity, healthy, gone_since = count(status.get("capacity", {}).get(name, 0)), offered.get(name, 0), None
        if name not in offered:
            gone_since = before[name] or now
            capacity = 0 if now - gone_since > _GRACE_S else capacity
        elif name in before and before[name] is None:
            capacity = min(max(capacity, healthy), (listed or offered).get(name, 0))
        else:  # the plugin has started
            capacity = healthy
        after[name] = gone_since
        amounts["capacity"][name], amounts["allocatable"][name] = canonical(capacity), canonical(healthy)
    if before == after and all(amounts[kind].items() <= status.get(kind, {}).items() for kind in amounts):
        return None
    registered = ",".join(name if since is None else f"{name}@{since:.0f}" for name, since in after.items())
    return {"metadata": {"annotations": {_REGISTERED: registered}}, "status": amounts}


def plugin_resources(node: Object) -> dict[str, int]:
    """Returns the allocatable devices by resource, even if their plugin has stopped."""
    return {name: allocatable(node, name) for name in _registered(node)}


def _registered(node: Object) -> dict[str, float | None]:
    """Returns for each resource the time when its plugin stopped, or None if the plugin runs."""
    entries = node["metadata"].get("annotations", {}).get(_REGISTERED, "").split(",")
    pairs = (entry.partition("@") for entry in entries if entry)
    return {name: float(since) if since else None for name, _, since in pairs}


def _works(hca: Hca) -> bool:
    return hca.state == "ACTIVE"
