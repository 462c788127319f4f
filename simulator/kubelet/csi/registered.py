"""The CSI drivers of each node, which the kubelet reports in CSINode objects.

Without these objects, Volcano rejects pods with claims, because it assumes that they exceed their queue's capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from config.data.blobfuse import DRIVER
from k8s.objects import Object
from simulator.kube.client import ApiError, KubeClient
from simulator.kubelet.csi.claims import SHARES, is_node_plugin

_API = "storage.k8s.io/v1"


class RegisteredDrivers:
    """Updates the CSINode of every node."""

    def __init__(self, kube: KubeClient, drivers: Callable[[], list[Object]]) -> None:
        self._kube, self._drivers = kube, drivers
        self._reported: dict[str, list[str]] = {}

    def sync(self, nodes: Iterable[Object], pods: Sequence[Object]) -> None:
        """Registers the blob driver where its plugin is ready, and file and disk drivers on every node."""
        everywhere = {found["metadata"]["name"] for found in self._drivers()} & set(SHARES)
        for node in nodes:
            name, uid = node["metadata"]["name"], node["metadata"]["uid"]
            blobs = {DRIVER} if any(is_node_plugin(pod, name) for pod in pods) else set()
            drivers = sorted(everywhere | blobs)
            if self._reported.get(uid) != drivers:
                self._publish(csi_node(name, uid, drivers))
                self._reported[uid] = drivers

    def _publish(self, wanted: Object) -> None:
        name = wanted["metadata"]["name"]
        found = self._kube.find(_API, "CSINode", name)
        try:
            if found is None:
                self._kube.create(wanted)
            else:
                self._kube.patch(_API, "CSINode", name, None, wanted)
        except ApiError as error:
            if not (error.not_found or error.conflict):  # the node was deleted or created; retries later
                raise


def csi_node(name: str, uid: str, drivers: Iterable[str]) -> Object:
    """Returns the CSINode of a node, with no limit on the number of volumes. It is deleted with the node."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
    return {
        "apiVersion": _API,
        "kind": "CSINode",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {"drivers": [{"name": driver, "nodeID": name, "topologyKeys": []} for driver in drivers]},
    }
