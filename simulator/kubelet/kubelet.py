"""The simulated kubelets of one cluster.

A pod gets a worker if the simulator can run one of its images. An annotation assigns other pods to KWOK once they may
start. Sandboxes read the cluster's state from a file.
"""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx

from k8s.objects import Object, has_ended
from simulator.host.certificates import Authority
from simulator.host.network import ClusterNetwork
from simulator.kube.client import STRATEGIC_MERGE_PATCH, ApiError, KubeClient, ignore_missing
from simulator.kube.informer import Informer
from simulator.kubelet import folders
from simulator.kubelet.access import PodAccess
from simulator.kubelet.addresses import Addresses
from simulator.kubelet.admission import Admission
from simulator.kubelet.cloud import Cloud
from simulator.kubelet.context import ContainerContext
from simulator.kubelet.controllers import Controllers
from simulator.kubelet.csi.claims import ClaimMounts
from simulator.kubelet.csi.registered import RegisteredDrivers
from simulator.kubelet.devices import DeviceManager
from simulator.kubelet.events import EventRecorder
from simulator.kubelet.kwok_pods import KwokPods
from simulator.kubelet.logs import LogFile
from simulator.kubelet.machines import Machines
from simulator.kubelet.nodes import RUN_BY, NodeKeeper, internal_ip
from simulator.kubelet.pages import Pages
from simulator.kubelet.placements import Placements
from simulator.kubelet.pods import PodCatalogue
from simulator.kubelet.programs import HostProcess, ImageProgram, Offers
from simulator.kubelet.pulls import ImagePulls
from simulator.kubelet.runner import Runnable, Script
from simulator.kubelet.scripts import Scripts
from simulator.kubelet.server import KubeletServer
from simulator.kubelet.status import ended_by_reboot, lost_with_node
from simulator.kubelet.volumes import PodVolumes
from simulator.kubelet.worker import PodServices, PodWorker
from simulator.sandbox import sandbox
from simulator.sandbox.uplink import Address, Uplink

_log = logging.getLogger(__name__)
KUBELET_PORT = 10250
_ACCOUNTS = ".blob.core.windows.net"
_TICK_S = 1.0
_GATHER_S = 0.05
"""The seconds for which changes are collected, so that one pass handles many changes at once."""


class ControlPlane(Protocol):
    name: str
    folder: Path
    authority: Authority

    @property
    def tls(self) -> ssl.SSLContext: ...

    def port(self, part: str) -> int: ...

    def client(self) -> KubeClient: ...


class Kubelet:
    def __init__(
        self,
        plane: ControlPlane,
        network: ClusterNetwork,
        programs: Sequence[ImageProgram],
        offers: Offers,
        cloud: Cloud,
        cluster_id: str,
    ) -> None:
        """`cluster_id` is the cluster's ARM id. Azure finds the kubelet identity by it."""
        self.plane, self.network, cloud = plane, network, cloud.at(cluster_id)
        self.kube = plane.client()
        self.folder = plane.folder
        self.placements = Placements(plane.folder / "placements.json")
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._pods = Informer(self.kube, "v1", "Pod", self._wake.set)
        self._nodes = Informer(self.kube, "v1", "Node", self._wake.set)
        self._drivers = Informer(self.kube, "storage.k8s.io/v1", "CSIDriver", self._wake.set)
        self._workers: dict[str, PodWorker] = {}
        self._synced = threading.Event()
        self._addresses = Addresses(self._pods.items)
        self._devices = DeviceManager(self._pods.items)
        self._api_port = plane.port("apiserver")
        self._keeper = NodeKeeper(self.kube, self._devices, offers, self.folder)
        scripts = Scripts(self._keeper, self.folder / "world", self._api_port)
        self.catalogue = PodCatalogue(programs, scripts.find, runs_scripts=sandbox.available() is None)
        self._access = PodAccess(self.folder, network, self._pods.get, self.catalogue.runnable)
        self._controllers = Controllers(self.catalogue, self._context)
        self._pages = Pages(self.catalogue, network, self._pods.items, self._devices.held)
        self._claims = ClaimMounts(self.kube, cloud, self.folder, self._pods.items)
        self._registered = RegisteredDrivers(self.kube, self._drivers.items)
        self._pulls = ImagePulls(partial(cloud.may_pull, cluster_id))
        self._recorder = EventRecorder(self.kube)
        self._admission = Admission(self.kube, self._keeper.allocate, self._recorder)
        self._kwok_pods = KwokPods(self.kube, self.catalogue, self._pulls, self._recorder, self._context)
        self._uplink = self._open_uplink(cloud)
        self._server = KubeletServer(plane.authority, plane.port("kubelet"), self._access)
        self._down: set[str] = set()
        self._machines = Machines(self.folder, self._keeper.hardware, self.catalogue)
        self._sweep = folders.Sweep(self.folder)
        self._thread = threading.Thread(target=self._run, name="kubelet", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the pods' processes. The pods stay in the API server and run again after the next start."""
        self._stop.set()
        self._wake.set()
        self._thread.join()
        for informer in (self._pods, self._nodes, self._drivers):
            informer.stop()
        self._controllers.stop()
        for worker in self._workers.values():
            worker.stop(delete=False)
        for worker in self._workers.values():
            worker.join()
        self._claims.stop()
        self._uplink.stop()
        self._server.stop()

    def is_ready(self, uid: str) -> bool:
        """Returns whether a pod is ready. Pods without a worker count as ready after the kubelets' first pass."""
        worker = self._workers.get(uid)
        return self._synced.is_set() and (worker is None or worker.ready)

    # -- the loop ------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        self._pods.synced.wait()
        self._nodes.synced.wait()
        while not self._stop.is_set():
            if self._wake.wait(_TICK_S):
                self._stop.wait(_GATHER_S)
            self._wake.clear()
            try:
                self._sync()
                self._synced.set()
            except (ApiError, httpx.HTTPError):  # the API server restarts; retries later
                self._stop.wait(_TICK_S)
            except Exception:  # noqa: BLE001 - one pod's error must not stop all kubelets; it is logged
                _log.exception("kubelet of %s", self.plane.name)
                self._stop.wait(_TICK_S)

    def _sync(self) -> None:
        nodes = {node["metadata"]["name"]: node for node in self._nodes.items()}
        bound = [pod for pod in self._pods.items() if pod["spec"].get("nodeName")]
        pods = [pod for pod in bound if not self._is_over(pod, nodes)]
        for node in nodes.values():
            for address in node.get("status", {}).get("addresses", []):
                if address["type"] == "InternalIP":
                    self.network.route(address["address"], KUBELET_PORT, self.plane.port("kubelet"))
        down = {name for name, node in nodes.items() if not self._keeper.hardware(node).up}
        booted = self._machines.sync(nodes, pods) | (self._down - down) & nodes.keys()
        self._down = down
        for pod in pods:
            name = pod["spec"]["nodeName"]
            if name in booted:
                self._reboot(pod)
            if name in down:  # the node's kubelet does not run
                self._kill(pod)
                continue
            try:
                self._sync_pod(pod, nodes.get(name))
            except httpx.HTTPError:
                raise
            except Exception as error:  # noqa: BLE001 - one pod's error must not prevent the start of other pods
                seen = not isinstance(error, ApiError)
                _log.warning("pod %s of %s: %s", pod["metadata"]["name"], self.plane.name, error, exc_info=seen)
        self._forget(bound, nodes)
        self._controllers.sync(pods, nodes)
        self._pages.sync(pods, nodes)
        self._keeper.sync(list(nodes.values()), bound, self._context, booted)
        self._registered.sync(nodes.values(), pods)
        self.placements.record(bound)

    def _is_over(self, pod: Object, nodes: Mapping[str, Object]) -> bool:
        """Returns whether a pod needs no more work. Batch jobs leave thousands of ended pods."""
        return has_ended(pod) and "deletionTimestamp" not in pod["metadata"] and pod["spec"]["nodeName"] in nodes

    def _kill(self, pod: Object) -> None:
        if worker := self._workers.get(pod["metadata"]["uid"]):
            worker.lose()

    def _reboot(self, pod: Object) -> None:
        worker = self._workers.pop(pod["metadata"]["uid"], None)
        if worker is None:  # a pod of KWOK, without a process
            return
        worker.lose()
        worker.join()
        if not has_ended(pod) and pod["spec"].get("restartPolicy") == "Never":
            self._patch_status(pod, ended_by_reboot(pod))

    def _forget(self, pods: Sequence[Object], nodes: Mapping[str, Object]) -> None:
        alive = {pod["metadata"]["uid"] for pod in pods}
        for uid in [uid for uid in self._workers if uid not in alive]:
            self._workers.pop(uid).stop(delete=False)
            self._addresses.forget(uid)
        self._claims.keep((pod["metadata"]["uid"] for pod in pods if not has_ended(pod)), nodes)
        self._pulls.keep(alive, nodes)
        self._recorder.keep(alive)
        self._kwok_pods.keep(alive)
        self._admission.keep(alive)
        self._sweep(pods, list(nodes.values()))

    def _sync_pod(self, pod: Object, node: Object | None) -> None:
        uid = pod["metadata"]["uid"]
        if node is None:
            self._lose(pod)
        elif not self._admission.admits(pod, node) or RUN_BY in pod["metadata"].get("annotations", {}):
            return
        elif uid not in self._workers and not self.catalogue.runs_here(pod):
            self._kwok_pods.advance(pod, node)
        elif pod["metadata"].get("deletionTimestamp"):
            self._end_worker(pod)
        elif uid in self._workers:
            self._workers[uid].restore(pod)
        elif not has_ended(pod):
            self._start_worker(pod, node)

    def _start_worker(self, pod: Object, node: Object) -> None:
        uid = pod["metadata"]["uid"]
        self._kwok_pods.report(pod)
        host_ip = internal_ip(node)
        pod_ip = host_ip if pod["spec"].get("hostNetwork") else self._addresses.of(pod)
        services = PodServices(
            kube=self.kube,
            context=lambda pod, container: self._context(pod, container, node),
            program=self.catalogue.runnable,
            serve=self._serve,
            unserve=self.network.unroute,
            pulls=self._pulls,
            recorder=self._recorder,
        )
        addressed = pod | {"status": pod.get("status", {}) | {"podIP": pod_ip, "hostIP": host_ip}}
        self._workers[uid] = PodWorker(services, addressed, pod_ip, host_ip)

    def _end_worker(self, pod: Object) -> None:
        worker = self._workers.get(pod["metadata"]["uid"])
        if worker is None or not worker.alive:
            self._remove(pod)
        elif not worker.delete_when_stopped:
            worker.stop(delete=True)

    def _lose(self, pod: Object) -> None:
        """Removes a pod of a deleted node. In Kubernetes, the pod GC removes it a minute later."""
        self._kill(pod)
        if not has_ended(pod):
            self._patch_status(pod, lost_with_node(pod))
        self._remove(pod)

    def _patch_status(self, pod: Object, body: Object) -> None:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        options: Any = {"subresource": "status", "content_type": STRATEGIC_MERGE_PATCH}
        ignore_missing(lambda: self.kube.patch("v1", "Pod", name, namespace, body, **options))

    def _remove(self, pod: Object) -> None:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        ignore_missing(lambda: self.kube.delete("v1", "Pod", name, namespace, grace_seconds=0))

    def _open_uplink(self, cloud: Cloud) -> Uplink:
        api, blobs = ("127.0.0.1", self._api_port), cloud.blobs

        def allows(address: Address) -> bool:
            return address == api or (blobs is not None and address == _address_of(blobs.url))

        authorities = blobs.ca_file.read_text() if blobs else ""
        return Uplink(self.folder / "world", allows, authorities, partial(_proxy_to, cloud), self.network.dial)

    # -- what workers and programs are given ---------------------------------------------------------------------------

    def _context(self, pod: Object, container: Object, node: Object | None = None) -> ContainerContext:
        name = pod["spec"]["nodeName"]
        found = node or self._nodes.get("", name) or {"metadata": {"name": name}}
        uid = pod["metadata"]["uid"]
        folder, root = folders.of_pod(self.folder, pod), folders.of_machine(self.folder, found)
        allocatable = found.get("status", {}).get("allocatable", {})
        volumes = PodVolumes(self.kube, pod, folder, root, self.plane.authority.pem, self._claims, allocatable)
        return ContainerContext(
            pod=pod,
            container=container,
            node=found,
            volumes=volumes,
            logfile=LogFile(folders.logs_of(self.folder, pod) / container["name"]),
            tls=self.plane.tls,
            neighbours=lambda: [p for p in self._pods.items() if p["spec"].get("nodeName") == name],
            choose_port=partial(self._addresses.port, uid, container["name"]),
            proxy=self.network.proxy,
        )

    def _serve(self, pod_ip: str, ctx: ContainerContext, program: Runnable) -> None:
        if isinstance(program, HostProcess):
            for container_port, local in program.ports(ctx).items():
                self.network.route(pod_ip, container_port, local)
        elif isinstance(program, Script):
            self.network.open(pod_ip, program.shim(ctx).dial)


def _proxy_to(cloud: Cloud, address: Address) -> str:
    return cloud.proxy if address[0].endswith(_ACCOUNTS) else ""


def _address_of(url: str) -> Address:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or 443
