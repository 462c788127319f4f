"""The simulated AKS clusters of a checkout (azure's ClusterBackend): each a control plane, a network and kubelets."""

from __future__ import annotations

import functools
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simulator import paths
from simulator.cluster import addons
from simulator.cluster.controlplane import ControlPlane
from simulator.cluster.network import ClusterNetwork
from simulator.cluster.provisioner import Provisioner
from simulator.kube.client import ApiError, KubeClient
from simulator.kubelet.cloud import Cloud, NoCloud
from simulator.kubelet.kubelet import Kubelet
from simulator.kubelet.programs import ImageProgram

Object = dict[str, Any]
_POOL_LABELS = "simulator/pool-labels"
"""Node annotation that remembers which labels the pool gave, so that those it gives no more go."""


class RunningCluster:
    """Everything of one cluster that runs."""

    def __init__(self, cluster_id: str, programs: Sequence[ImageProgram], cloud: Cloud) -> None:
        self.plane = ControlPlane(_name(cluster_id))
        self.network = ClusterNetwork(self.plane.authority, self.plane.port("egress"))
        self.plane.start()
        self.kube: KubeClient = self.plane.client()
        self.kubelet = Kubelet(self.plane, self.network, programs, cloud, cluster_id)
        self._provisioner = Provisioner(self.kube, self.plane.folder)

    def stop(self) -> None:
        self._provisioner.stop()
        self.kubelet.stop()
        self.plane.stop()
        self.network.stop()


class Clusters:
    """Implements azure's ClusterBackend. A cluster's folder is named after the last part of its ARM id."""

    def __init__(self, programs: Sequence[ImageProgram]) -> None:
        self._programs = programs
        self.cloud: Cloud = NoCloud()
        """Azure as the nodes of clusters created from now on reach it."""
        self._running: dict[str, RunningCluster] = {}
        self._lock = threading.RLock()

    def create(self, cluster_id: str) -> None:
        with self._lock:
            name = _name(cluster_id)
            if name not in self._running:
                self._running[name] = RunningCluster(cluster_id, self._programs, self.cloud)

    def delete(self, cluster_id: str) -> None:
        with self._lock:
            name = _name(cluster_id)
            if running := self._running.pop(name, None):
                running.stop()
            shutil.rmtree(paths.cluster(cluster_id), ignore_errors=True)

    def admin_kubeconfig(self, cluster_id: str) -> str:
        return self.running(cluster_id).plane.kubeconfig()

    def set_storage(self, cluster_id: str, storage_profile: Mapping[str, Any]) -> None:
        """Turns the CSI drivers of AKS on and off."""
        addons.apply(self.running(cluster_id).kube, storage_profile)

    def set_nodes(self, cluster_id: str, nodes: Sequence[Object]) -> None:
        """Removes, adds and updates nodes; kubelets then do the rest (pods of removed nodes go with them)."""
        kube = self.running(cluster_id).kube
        wanted = {node["metadata"]["name"]: node for node in nodes}
        there = {node["metadata"]["name"]: node for node in kube.list("v1", "Node")}
        for name in sorted(there.keys() - wanted.keys()):
            _ignore_missing(functools.partial(kube.delete, "v1", "Node", name))
        for name, node in sorted(wanted.items()):
            node["metadata"].setdefault("annotations", {})[_POOL_LABELS] = ",".join(sorted(node["metadata"]["labels"]))
            if name not in there:
                kube.create(node)
                status = {"status": node["status"]}
                kube.patch("v1", "Node", name, None, status, subresource="status")
            else:
                _update(kube, there[name], node)

    def running(self, cluster_id: str) -> RunningCluster:
        """Raises KeyError for a cluster that does not run."""
        with self._lock:
            return self._running[_name(cluster_id)]

    def all(self) -> dict[str, RunningCluster]:
        with self._lock:
            return dict(self._running)

    def stop(self) -> None:
        with self._lock:
            for running in self._running.values():
                running.stop()
            self._running.clear()


def _name(cluster_id: str) -> str:
    return paths.cluster(cluster_id).name


def _update(kube: KubeClient, there: Object, wanted: Object) -> None:
    """Sets the pool's labels and taints; labels that others set (NFD, operators) stay."""
    labels = wanted["metadata"].get("labels", {})
    taints = wanted.get("spec", {}).get("taints")
    body: Object = {"metadata": {"labels": _removed(there, wanted) | labels}}
    current = there["metadata"].get("labels", {})
    own = [taint for taint in there["spec"].get("taints", []) if not taint["key"].startswith("node.kubernetes.io/")]
    if any(current.get(key) != value for key, value in body["metadata"]["labels"].items()) or own != (taints or []):
        kept = [taint for taint in there["spec"].get("taints", []) if taint["key"].startswith("node.kubernetes.io/")]
        body["spec"] = {"taints": (taints or []) + kept}
        body["metadata"]["annotations"] = wanted["metadata"].get("annotations", {})
        kube.patch("v1", "Node", there["metadata"]["name"], None, body)


def _removed(there: Object, wanted: Object) -> dict[str, None]:
    """Labels that the pool gave before and gives no more, as nulls of a merge patch."""
    before = there["metadata"].get("annotations", {}).get(_POOL_LABELS, "")
    return {key: None for key in before.split(",") if key and key not in wanted["metadata"].get("labels", {})}


def _ignore_missing(call: Callable[[], object]) -> None:
    try:
        call()
    except ApiError as error:
        if not error.not_found:
            raise
