"""The simulated AKS clusters of a checkout: control planes, networks and kubelets (Azure's ClusterBackend)."""

from __future__ import annotations

import contextlib
import functools
import shutil
import subprocess
import threading
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml

from k8s.objects import Object
from simulator.cluster import addons, entra
from simulator.cluster.azure_files import AzureFiles
from simulator.cluster.controlplane import ControlPlane, NotReady
from simulator.cluster.load_balancers import LoadBalancers
from simulator.cluster.provisioner import Provisioner
from simulator.cluster.webhooks import await_webhooks
from simulator.host import files, paths, ports
from simulator.host.network import ClusterNetwork
from simulator.kube.client import ApiError, KubeClient, ignore_missing
from simulator.kubelet.cloud import Cloud, NoCloud
from simulator.kubelet.kubelet import Kubelet
from simulator.kubelet.programs import ImageProgram, Offers

_RUN_TIMEOUT_S = 120
_OF_OTHERS = ("node.kubernetes.io/", "ToBeDeletedByClusterAutoscaler", "remediator.kubernetes.azure.com/")
"""Prefixes of taints of other owners, which updates of a pool keep."""
_POOL_LABELS = "simulator/pool-labels"
"""The node annotation that lists the pool's labels. A label that the pool loses is removed from the node."""


class RunningCluster:
    def __init__(self, cluster_id: str, programs: Sequence[ImageProgram], offers: Offers, cloud: Cloud) -> None:
        """Boots the cluster. If a part fails, stops all parts and raises NotReady or ports.PortTaken."""
        login, names = cloud.entra(cluster_id), cloud.names(cluster_id)
        self.plane = ControlPlane(_name(cluster_id), cloud.issuer(cluster_id), login, names)
        with contextlib.ExitStack() as parts:
            parts.callback(self.plane.stop)
            self.network = ClusterNetwork(self.plane.authority, ports.require_free(f"{self.plane.name}.egress"))
            parts.callback(self.network.stop)
            self.plane.start()
            self.kube: KubeClient = self.plane.client()
            self.kubelet = Kubelet(self.plane, self.network, programs, offers, cloud, cluster_id)
            parts.callback(self.kubelet.stop)
            files = AzureFiles(lambda group, account, nfs: cloud.share_refusal(cluster_id, group, account, nfs=nfs))
            parts.callback(Provisioner(self.kube, self.plane.folder, files).stop)
            parts.callback(LoadBalancers(self.kube).stop)
            self._parts = parts.pop_all()

    def await_webhooks(self, timeout_s: float) -> None:
        await_webhooks(self.kube, self.kubelet.is_ready, timeout_s)

    def stop(self) -> None:
        self._parts.close()


class Clusters:
    """All clusters, in folders named by resource group and name (`paths.cluster`)."""

    def __init__(self, programs: Sequence[ImageProgram], offers: Offers) -> None:
        self._programs, self._offers = programs, offers
        self.cloud: Cloud = NoCloud()
        """The simulated Azure that clusters created later use."""
        self._running: dict[str, RunningCluster] = {}
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        """Locks by cluster name. They are held while the cluster boots or ends."""
        self._stopped = False

    def create(self, cluster_id: str) -> None:
        """Boots a cluster, or updates the access to a running cluster. Raises NotReady or ports.PortTaken."""
        name = _name(cluster_id)
        with self._locks[name]:
            if self._stopped:
                raise NotReady(f"cluster {name} is not booted: the simulator is being stopped")
            if running := self._running.get(name):
                running.plane.set_access(self.cloud.issuer(cluster_id), self.cloud.entra(cluster_id))
            else:
                self._running[name] = RunningCluster(cluster_id, self._programs, self._offers, self.cloud)

    def delete(self, cluster_id: str) -> None:
        """Stops a cluster and removes its folder. Raises OSError."""
        name = _name(cluster_id)
        with self._locks[name]:
            self._end(name)
            if (folder := paths.cluster(cluster_id)).exists():
                shutil.rmtree(folder)

    def halt(self, cluster_id: str) -> None:
        """Stops the cluster's processes. `create` starts it again."""
        name = _name(cluster_id)
        with self._locks[name]:
            self._end(name)

    def rotate(self, cluster_id: str) -> None:
        """Stops the cluster and deletes its certificates. `create` makes new certificates, and pods restart."""
        name = _name(cluster_id)
        with self._locks[name]:
            self._end(name)
            shutil.rmtree(paths.cluster(cluster_id) / "pki")

    def run(self, cluster_id: str, argv: Sequence[str], folder: Path, token: str) -> tuple[int, str]:
        """Runs kubectl or helm as the token's owner, or as administrator. Returns the exit code and the output.

        Raises TimeoutError.
        """
        plane = self.running(cluster_id).plane
        own = plane.authority.kubeconfig("admin", plane.server, plane.name)
        if token:
            own["users"][0]["user"] = {"token": token}
        config = folder / f".{uuid.uuid4().hex}"
        files.replace(config, yaml.safe_dump(own))
        environment = {"KUBECONFIG": str(config), "HOME": str(folder), "PATH": ""}
        try:
            done = subprocess.run(
                [str(paths.tool(argv[0])), *argv[1:]],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_RUN_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"{argv[0]} did not end within {_RUN_TIMEOUT_S} s, and was killed") from error
        return done.returncode, done.stdout.decode(errors="replace")

    def admin_kubeconfig(self, cluster_id: str) -> str:
        return yaml.safe_dump(self.running(cluster_id).plane.for_users(), sort_keys=False)

    def api_port(self, cluster_id: str) -> int:
        return self.running(cluster_id).plane.port("apiserver")

    def set_storage(self, cluster_id: str, storage_profile: Mapping[str, Any]) -> None:
        addons.apply(self.running(cluster_id).kube, storage_profile)

    def set_admins(self, cluster_id: str, groups: Sequence[str]) -> None:
        """Sets the groups of the administrators' ClusterRoleBinding, as on AKS. Without groups, deletes the binding."""
        kube, binding = self.running(cluster_id).kube, entra.admins(list(groups))
        if groups:
            kube.apply(binding, force=True)
        else:
            ignore_missing(functools.partial(kube.delete, binding["apiVersion"], binding["kind"], entra.ADMINS))

    def set_nodes(self, cluster_id: str, nodes: Sequence[Object]) -> dict[str, str]:
        """Adds, updates and removes nodes. The kubelet then ends the pods of removed nodes.

        Returns the API server's errors for invalid nodes, by node name.
        """
        kube = self.running(cluster_id).kube
        wanted = {node["metadata"]["name"]: node for node in nodes}
        there = {node["metadata"]["name"]: node for node in kube.list("v1", "Node")}
        for name in sorted(there.keys() - wanted.keys()):
            ignore_missing(functools.partial(kube.delete, "v1", "Node", name))
        refused: dict[str, str] = {}
        for name, node in sorted(wanted.items()):
            node["metadata"].setdefault("annotations", {})[_POOL_LABELS] = ",".join(sorted(node["metadata"]["labels"]))
            try:
                _set(kube, there.get(name), node)
            except ApiError as error:
                if error.code != HTTPStatus.UNPROCESSABLE_ENTITY:
                    raise
                refused[name] = error.message
        return refused

    def running(self, cluster_id: str) -> RunningCluster:
        """Returns the running cluster. Raises KeyError."""
        return self._running[_name(cluster_id)]

    def client(self, cluster_id: str) -> KubeClient | None:
        """Returns the client of a running cluster, or None."""
        running = self._running.get(_name(cluster_id))
        return running.kube if running else None

    def all(self) -> dict[str, RunningCluster]:
        return dict(self._running)

    def stop(self) -> None:
        """Waits for clusters that boot, and stops all clusters. Afterwards, no cluster can be created."""
        self._stopped = True
        for name in list(self._locks):
            with self._locks[name]:
                self._end(name)

    def _end(self, name: str) -> None:
        if running := self._running.pop(name, None):
            running.stop()


def _name(cluster_id: str) -> str:
    return paths.cluster(cluster_id).name


def _set(kube: KubeClient, there: Object | None, wanted: Object) -> None:
    if there is not None:
        _update(kube, there, wanted)
        return
    kube.create(wanted)
    status: Object = {"status": wanted["status"]}
    kube.patch("v1", "Node", wanted["metadata"]["name"], None, status, subresource="status")


def _update(kube: KubeClient, there: Object, wanted: Object) -> None:
    """Keeps labels and taints of other owners (NFD, operators)."""
    info = wanted["status"]["nodeInfo"]
    if there["status"]["nodeInfo"]["kubeletVersion"] != info["kubeletVersion"]:
        body: Object = {"status": {"nodeInfo": info}}
        kube.patch("v1", "Node", there["metadata"]["name"], None, body, subresource="status")
    labels = wanted["metadata"].get("labels", {})
    taints = wanted.get("spec", {}).get("taints")
    body = {"metadata": {"labels": _removed(there, wanted) | labels}}
    current = there["metadata"].get("labels", {})
    own = [taint for taint in there["spec"].get("taints", []) if not taint["key"].startswith(_OF_OTHERS)]
    if any(current.get(key) != value for key, value in body["metadata"]["labels"].items()) or own != (taints or []):
        kept = [taint for taint in there["spec"].get("taints", []) if taint["key"].startswith(_OF_OTHERS)]
        body["spec"] = {"taints": (taints or []) + kept}
        body["metadata"]["annotations"] = wanted["metadata"].get("annotations", {})
        kube.patch("v1", "Node", there["metadata"]["name"], None, body)


def _removed(there: Object, wanted: Object) -> dict[str, None]:
    before = there["metadata"].get("annotations", {}).get(_POOL_LABELS, "")
    return {key: None for key in before.split(",") if key and key not in wanted["metadata"].get("labels", {})}
