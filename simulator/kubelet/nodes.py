"""Updates simulated nodes: their devices and faults, and `world.json`, which simulated commands read."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

from k8s.objects import Object, has_ended
from simulator.kube.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH, KubeClient, ignore_missing
from simulator.kubelet import folders
from simulator.kubelet.context import ContainerContext
from simulator.kubelet.devices import Allocation, DeviceManager, plugin_resources, status_patch
from simulator.kubelet.errors import VolumeNotReady
from simulator.kubelet.programs import Offers
from simulator.kubelet.shim_client import run_folder
from simulator.kubelet.status import now
from simulator.world import snapshot
from simulator.world.faults import FaultKind
from simulator.world.hardware import NodeHardware
from simulator.world.nodes import hardware_of

FAULT = "simulator/fault"
RUN_BY, KWOK, NONE = "simulator/run-by", "kwok", "none"
"""The annotation of pods that KWOK runs, and its values: KWOK, or NONE while the pod's node is down."""


class NodeKeeper:
    """Updates all nodes."""

    def __init__(self, kube: KubeClient, devices: DeviceManager, offers: Offers, folder: Path) -> None:
        self._kube, self._devices, self._offers, self._folder = kube, devices, offers, folder
        self._offered: dict[str, dict[str, int]] = {}
        self._shown: Object = {}
        self._read: dict[str, tuple[tuple[str, int], bytes]] = {}
        """The last file that was read for each pod uid: (path, restarts of the pod), content."""

    def sync(
        self,
        nodes: Sequence[Object],
        pods: Sequence[Object],
        context: Callable[[Object, Object], ContainerContext],
        booted: Collection[str] = (),
    ) -> None:
        """Updates the status of the nodes, and `world.json`.

        Ignores ended pods, because batch jobs leave thousands. Does not ignore an ended pod with `spec.subdomain`,
        because other pods may look up its DNS name.
        """
        pods = [pod for pod in pods if pod["spec"].get("subdomain") or not has_ended(pod)]
        alive = {pod["metadata"]["uid"] for pod in pods}
        self._read = {uid: read for uid, read in self._read.items() if uid in alive}
        hardware = {node["metadata"]["name"]: self.hardware(node) for node in nodes}
        for node in nodes:
            name = node["metadata"]["name"]
            here = [pod for pod in pods if pod["spec"]["nodeName"] == name]
            self._mark_fault(node, here, up=hardware[name].up)
            files = partial(self._file, context)
            self._offered[name] = offered = self._offers(node, here, hardware[name], files)
            healthy = hardware[name].without_faults
            listed = offered if healthy == hardware[name] else self._offers(node, here, healthy, files)
            if patch := status_patch(node, offered, listed, time.time(), booted=name in booted):
                self._patch_status(name, patch)
        self._show_world(nodes, pods, hardware)

    def _file(self, context: Callable[[Object, Object], ContainerContext], pod: Object, path: str) -> bytes | None:
        """Returns a mounted file as it was at the pod's last start, or when `path` last changed.

        Device plugins do not read changes of a file: SR-IOV's and the shared RDMA plugin read it in `main`
        (cmd/sriovdp/main.go, cmd/k8s-rdma-shared-dp/main.go). NVIDIA's also reads when the node's label names another
        file (cmd/config-manager/main.go of k8s-device-plugin).
        """
        restarts = sum(each.get("restartCount", 0) for each in pod.get("status", {}).get("containerStatuses", []))
        uid, wanted = pod["metadata"]["uid"], (path, restarts)
        if (known := self._read.get(uid)) and known[0] == wanted:
            return known[1]
        content = _file(context, pod, path)
        if content is not None:
            self._read[uid] = wanted, content
        return content

    def hardware(self, node: Object) -> NodeHardware:
        return hardware_of(node)

    def allocate(self, pod: Object, node: Object) -> Allocation:
        """Allocates a pod's devices. Raises Unavailable if they became unavailable after scheduling."""
        before_restart = plugin_resources(node)
        now = self._offered.get(node["metadata"]["name"])
        offered = before_restart if now is None else {**dict.fromkeys(before_restart, 0), **now}
        runs = pod.get("status", {}).get("phase") == "Running" or RUN_BY in pod["metadata"].get("annotations", {})
        return self._devices.allocate(pod, self.hardware(node), offered, runs=runs)

    def _mark_fault(self, node: Object, pods: Sequence[Object], *, up: bool) -> None:
        """When a node goes down, marks it Unknown and its pods not ready. In Kubernetes, this takes a timeout."""
        name = node["metadata"]["name"]
        marked = FAULT in node["metadata"].get("annotations", {})
        if up == (not marked):
            return
        for pod in pods:
            self._set_ready(pod, ready=up)
        annotation = None if up else str(FaultKind.NODE)
        self._kube.patch("v1", "Node", name, None, {"metadata": {"annotations": {FAULT: annotation}}})
        if not up:
            condition = {
                "type": "Ready",
                "status": "Unknown",
                "reason": "NodeStatusUnknown",
                "message": "Kubelet stopped posting node status.",
                "lastTransitionTime": now(),
            }
            self._patch_status(name, {"status": {"conditions": [condition]}}, strategic=True)

    def _set_ready(self, pod: Object, *, ready: bool) -> None:
        """Sets a pod's readiness. KWOK ignores pods that are not ready. Workers make their own pods ready again."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        kept_by_kwok = RUN_BY in pod["metadata"].get("annotations", {})
        if has_ended(pod) or (ready and not kept_by_kwok):
            return
        patches: list[Callable[[], object]] = [partial(self._patch_ready, name, namespace, ready=ready)]
        if kept_by_kwok:
            body = {"metadata": {"annotations": {RUN_BY: KWOK if ready else NONE}}}
            patches.insert(int(ready), partial(self._kube.patch, "v1", "Pod", name, namespace, body))
        for patch in patches:
            ignore_missing(patch)

    def _patch_ready(self, name: str, namespace: str, *, ready: bool) -> None:
        condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": now()}
        body = {"status": {"conditions": [condition]}}
        self._kube.patch("v1", "Pod", name, namespace, body, subresource="status", content_type=STRATEGIC_MERGE_PATCH)

    def _patch_status(self, name: str, body: Object, *, strategic: bool = False) -> None:
        content_type = STRATEGIC_MERGE_PATCH if strategic else MERGE_PATCH
        ignore_missing(
            lambda: self._kube.patch("v1", "Node", name, None, body, subresource="status", content_type=content_type)
        )

    def _show_world(self, nodes: Sequence[Object], pods: Sequence[Object], hardware: dict[str, NodeHardware]) -> None:
        held = self._devices.held()
        allocations = {snapshot.pod_key(pod): held.get(pod["metadata"]["uid"], {}) for pod in pods}
        states: dict[str, Object] = {}
        for pod in pods:
            for folder in run_folder(folders.of_pod(self._folder, pod), "").glob("*/pod"):
                states[snapshot.pod_key(pod)] = states.get(snapshot.pod_key(pod), {}) | snapshot.states_of(folder)
        world = snapshot.snapshot(nodes, pods, hardware, allocations, states)
        if world != self._shown:
            snapshot.write(world, self._folder / "world")
            self._shown = world


def internal_ip(node: Object) -> str:
    addresses = node["status"]["addresses"]
    return next(str(entry["address"]) for entry in addresses if entry["type"] == "InternalIP")


def _file(context: Callable[[Object, Object], ContainerContext], pod: Object, path: str) -> bytes | None:
    for container in pod["spec"]["containers"]:
        try:
            found = context(pod, container).file(path)
        except VolumeNotReady:  # the ConfigMap does not exist yet, or was deleted before the pod
            continue
        if found is not None:
            return found
    return None
