"""Mounts the volumes of claims. All pods of a node share one mount of a PersistentVolume, as on real Azure.

So a changed secret takes effect only when no pod of the node uses the volume any more. If a volume is mounted with the
identity of pods, each pod has its own mount.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import shutil
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from azure.core.exceptions import AzureError

from config.data.blobfuse import DRIVER
from k8s.objects import Object, is_ready
from simulator.kube.client import KubeClient
from simulator.kubelet.cloud import Cloud
from simulator.kubelet.csi import blob, identity, nfs
from simulator.kubelet.csi.confined import contained
from simulator.kubelet.csi.mount import BlobMount
from simulator.kubelet.errors import VolumeNotReady
from simulator.kubelet.events import warn
from simulator.kubelet.pulls import repository

Key = tuple[str, str, str]
"""The node, the PersistentVolume, and the pod's uid. The uid is empty if pods share the mount."""
SHARES = {"file.csi.azure.com": "Azure Files", "disk.csi.azure.com": "Azure Disk"}
"""CSI drivers whose volumes are folders of this machine, which `simulator/cluster/provisioner.py` creates."""
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Mounted:
    """A pod's volume on this machine."""

    path: Path
    read_only: bool


class ClaimMounts:
    """Mounted claims of a cluster's pods. Thread-safe."""

    def __init__(self, kube: KubeClient, cloud: Cloud, folder: Path, pods: Callable[[], list[Object]]) -> None:
        """`folder` is the cluster's folder."""
        self._kube, self._cloud, self._folder, self._pods = kube, cloud, folder, pods
        self._lock = threading.Lock()
        """Guards the fields below. Before mounting or unmounting, lock the mount's key by `_locks`."""
        self._mounts: dict[Key, BlobMount] = {}
        self._unused: dict[Key, BlobMount] = {}
        """Closed mounts with their files, so that the next pods do not have to copy the whole blob container."""
        self._opened_by: dict[Key, tuple[Object, dict[str, str], bool]] = {}
        """Each mount's parts: the volume's spec, the secret, and whether the mount is read-only."""
        self._users: defaultdict[Key, set[str]] = defaultdict(set)
        self._locks: defaultdict[Key, threading.Lock] = defaultdict(threading.Lock)
        self._reported: defaultdict[Key, set[str]] = defaultdict(set)

    def mount(self, pod: Object, claim: str, *, read_only: bool) -> Mounted:
        """Mounts a claim in the pod's namespace on the pod's node. Raises VolumeNotReady."""
        volume = self._volume(pod["metadata"]["namespace"], claim)
        csi = volume["spec"].get("csi") or {}
        modes = volume["spec"].get("accessModes") or []
        read_only = read_only or bool(csi.get("readOnly")) or modes[:1] == ["ReadOnlyMany"]
        driver, name = csi.get("driver"), volume["metadata"]["name"]
        if driver == DRIVER:
            mount = self._blob(pod, volume, read_only=modes[:1] == ["ReadOnlyMany"])
            return Mounted(mount.path, read_only or mount.read_only)
        if driver in SHARES:
            return Mounted(self._share(volume, driver), read_only)
        if export := volume["spec"].get("nfs"):
            return self.mount_export(export, read_only=read_only)
        kind = driver or ", ".join(key for key in volume["spec"] if key in ("hostPath", "local", "iscsi"))
        raise VolumeNotReady(f'MountVolume.SetUp failed for volume "{name}" : the simulator cannot mount {kind}')

    def mount_export(self, source: Object, *, read_only: bool = False) -> Mounted:
        """Returns the folder of an NFS export, which all nodes share. Creates a missing folder."""
        exports = self._folder / "nfs"
        folder = contained(exports, exports / source["server"] / source["path"].lstrip("/"))
        folder.mkdir(parents=True, exist_ok=True)
        return Mounted(folder, read_only or bool(source.get("readOnly")))

    def flush(self, pod: Object) -> None:
        """Sends the pod's writes to the blob containers of its volumes."""
        uid = pod["metadata"]["uid"]
        with self._lock:
            used = [mount for key, mount in self._mounts.items() if uid in self._users[key]]
        for mount in used:
            mount.flush()

    def keep(self, uids: Iterable[str], nodes: Collection[str]) -> None:
        alive = set(uids)
        for key in self._keys():
            lock = self._lock_of(key)
            if not lock.acquire(blocking=False):  # being mounted
                continue
            try:
                with self._lock:
                    self._users[key] &= alive
                    unused = not self._users[key]
                if unused:
                    self._unmount(key, waits=False)  # does not wait, because waiting would block all kubelets
            finally:
                lock.release()
        with self._lock:
            gone = [self._unused.pop(key) for key in list(self._unused) if key[0] not in nodes]
        for mount in gone:
            mount.discard()

    def stop(self) -> None:
        for key in self._keys():
            with self._lock_of(key):
                self._unmount(key)
        for mount in self._unused.values():
            mount.discard()
        shutil.rmtree(self._folder / "mounts", ignore_errors=True)

    # -- drivers -------------------------------------------------------------------------------------------------------

    def _volume(self, namespace: str, claim: str) -> Object:
        found = self._kube.find("v1", "PersistentVolumeClaim", claim, namespace)
        if found is None:
            raise VolumeNotReady(f'persistentvolumeclaim "{claim}" not found')
        name = found["spec"].get("volumeName")
        volume = self._kube.find("v1", "PersistentVolume", name) if name else None
        if volume is None or found.get("status", {}).get("phase") != "Bound":
            raise VolumeNotReady(f"PVC {namespace}/{claim} is not bound to a volume")
        return volume

    def _blob(self, pod: Object, volume: Object, *, read_only: bool) -> BlobMount:
        node, name, uid = pod["spec"]["nodeName"], volume["metadata"]["name"], pod["metadata"]["uid"]
        key = (node, name, uid if identity.is_asked(volume) else "")
        with self._lock_of(key):
            with self._lock:
                mount, known = self._mounts.get(key), uid in self._users[key]
            if mount is None:
                mount = self._stage(key, pod, volume, read_only=read_only)
            elif not known:
                mount.refresh()
            with self._lock:
                self._mounts[key] = mount
                self._users[key].add(uid)
            return mount

    def _stage(self, key: Key, pod: Object, volume: Object, *, read_only: bool) -> BlobMount:
        node, name, own = key
        plugin = next((pod for pod in self._pods() if is_node_plugin(pod, node)), None)
        if plugin is None:
            raise _not_registered(_prefix(volume), DRIVER)
        prefix = _prefix(volume, "SetUp" if own else "MountDevice")
        folder = self._folder / "mounts" / node / (f"{name}-{own}" if own else name)
        try:
            if own:
                self._check_identity(volume, plugin)
            secret = {} if own else self._secret(volume, prefix)
            opened_by = volume["spec"], secret, read_only
            if not own and (again := self._reopened(key, opened_by)):
                return again
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(folder)
            self._opened_by[key] = opened_by
            return blob.stage(
                volume,
                secret,
                self._cloud,
                folder,
                read_only=read_only,
                report=lambda message: self._report(key, message),
                identity=identity.of_pod(volume, pod, self._kube, self._cloud) if own else None,
            )
        except blob.StageError as error:
            raise VolumeNotReady(f"{prefix}rpc error: code = Internal desc = {error}") from error
        except OSError as error:  # a mount would send the remaining old files to the container
            raise VolumeNotReady(f"{prefix}the simulator cannot empty {folder}, remove it: {error}") from error

    def _reopened(self, key: Key, opened_by: tuple[Object, dict[str, str], bool]) -> BlobMount | None:
        with self._lock:
            mount = self._unused.pop(key, None)
        if mount is None:
            return None
        with contextlib.suppress(AzureError):  # the next mount reports it
            if self._opened_by[key] == opened_by:
                mount.reopen()
                return mount
        mount.discard()
        return None

    def _check_identity(self, volume: Object, plugin: Object) -> None:
        driver = self._kube.find("storage.k8s.io/v1", "CSIDriver", DRIVER) or {}
        if reason := identity.why_not(volume, _tag(plugin), driver):
            raise blob.StageError(reason)

    def _secret(self, volume: Object, prefix: str) -> dict[str, str]:
        reference = volume["spec"]["csi"].get("nodeStageSecretRef")
        if reference is None:
            raise VolumeNotReady(
                f"{prefix}the volume has neither nodeStageSecretRef nor a pod's identity, and the simulator "
                "mounts blobs only with one of them"
            )
        name, namespace = reference["name"], reference["namespace"]
        found = self._kube.find("v1", "Secret", name, namespace)
        if found is None:
            raise VolumeNotReady(
                f"{prefix}fetching NodeStageSecretRef {namespace}/{name} failed: kubernetes.io/csi: failed to find the "
                f'secret {name} in the namespace {namespace} with error: secrets "{name}" not found'
            )
        data = found.get("data") or {}
        return {key: base64.b64decode(value).decode(errors="replace") for key, value in data.items()}

    def _share(self, volume: Object, driver: str) -> Path:
        prefix = _prefix(volume)
        if self._kube.find("storage.k8s.io/v1", "CSIDriver", driver) is None:
            raise _not_registered(prefix, driver)
        if PROVISIONED_BY not in volume["metadata"].get("annotations", {}):
            raise VolumeNotReady(f"{prefix}the simulator supports {SHARES[driver]} volumes only by a StorageClass")
        if nfs.is_asked(volume) and (why := nfs.why_not(volume, self._cloud)):
            raise VolumeNotReady(f"{prefix}{why}")
        return share_folder(self._folder, volume["metadata"]["name"])

    def _keys(self) -> list[Key]:
        with self._lock:
            return list(self._mounts)

    def _lock_of(self, key: Key) -> threading.Lock:
        with self._lock:
            return self._locks[key]

    def _unmount(self, key: Key, *, waits: bool = True) -> None:
        """Closes a mount. Keeps its files for the next pods only if they equal the blobs."""
        with self._lock:
            mount = self._mounts[key]
        if not mount.close(waits=waits):
            return
        with self._lock:
            del self._mounts[key]
            self._users.pop(key, None)
        kept = not key[-1] and mount.is_alike()
        with self._lock:
            self._reported.pop(key, None)
            if kept:
                self._unused[key] = mount
        if not kept:
            mount.discard()

    def _report(self, key: Key, message: str) -> None:
        with self._lock:
            if message in self._reported[key]:
                return
            self._reported[key].add(message)
            users = set(self._users[key])
        _log.warning("volume %s on node %s: %s", key[1], key[0], message)
        for pod in self._pods():
            if pod["metadata"]["uid"] in users:
                warn(self._kube, pod, "BlobfuseError", f'volume "{key[1]}": {message}')


def share_folder(cluster: Path, volume: str) -> Path:
    folder = cluster / "shares" / volume
    with contextlib.suppress(FileExistsError):
        folder.mkdir(parents=True)
    return folder


def _prefix(volume: Object, step: str = "MountDevice") -> str:
    return f'MountVolume.{step} failed for volume "{volume["metadata"]["name"]}" : '


def _tag(plugin: Object) -> str:
    images = [container["image"] for container in plugin["spec"]["containers"]]
    own = next(image for image in images if repository(image).endswith(f"/{blob.NODE_PLUGIN_IMAGE}"))
    return str(own).rpartition(":")[2]


def _not_registered(prefix: str, driver: str) -> VolumeNotReady:
    return VolumeNotReady(
        f"{prefix}kubernetes.io/csi: attacher.MountDevice failed to create newCsiDriverClient: "
        f"driver name {driver} not found in the list of registered CSI drivers"
    )


def is_node_plugin(pod: Object, node: str) -> bool:
    """Returns whether the pod is the blob driver's plugin on the node, and is ready."""
    if pod["spec"].get("nodeName") != node or not is_ready(pod):
        return False
    return any(repository(c["image"]).endswith(f"/{blob.NODE_PLUGIN_IMAGE}") for c in pod["spec"]["containers"])
