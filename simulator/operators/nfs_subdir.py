"""Emulates the NFS provisioner, which creates a folder for each claim, and later archives, keeps or deletes the folder.

The Go module is not available. Source: image v4.0.2 (kubernetes-sigs/nfs-subdir-external-provisioner,
cmd/.../provisioner.go, on sig-storage-lib-external-provisioner v6.0.0, controller.go).
"""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

from k8s.objects import Object
from simulator.kube import events
from simulator.kubelet.csi.claims import PROVISIONED_BY
from simulator.kubelet.programs import PodContext
from simulator.operators._loop import reconcile

_ROOT = "/persistentvolumes"
"""The path where the pod mounts the server's folder."""
_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
"""The annotation of a claim in which the controller-manager writes the claim's provisioner."""
_CLAIM, _VOLUME, _CLASS = (
    ("v1", "PersistentVolumeClaim"),
    ("v1", "PersistentVolume"),
    ("storage.k8s.io/v1", "StorageClass"),
)


def run(ctx: PodContext, stop: threading.Event) -> None:
    provisioner = Provisioner(ctx)
    reconcile(ctx, stop, provisioner.step, watched=(_CLAIM, _VOLUME))


class Provisioner:
    """The provisioner in a pod. The pod's environment configures it."""

    def __init__(self, ctx: PodContext) -> None:
        env = ctx.env()
        self._ctx, self._kube, self._root = ctx, ctx.kube, Path(ctx.host_path(_ROOT))
        self._name, self._server, self._path = env["PROVISIONER_NAME"], env["NFS_SERVER"], env["NFS_PATH"]
        self._reported: set[tuple[str, str]] = set()

    def step(self) -> None:
        volumes = self._kube.list(*_VOLUME)
        there = {volume["metadata"]["name"] for volume in volumes}
        for claim in self._kube.list(*_CLAIM):
            if f"pvc-{claim['metadata']['uid']}" not in there and self._is_asked(claim):
                self._provision({"apiVersion": _CLAIM[0], "kind": _CLAIM[1], **claim})
        for volume in filter(self._is_released, volumes):
            self._delete({"apiVersion": _VOLUME[0], "kind": _VOLUME[1], **volume})

    def _is_asked(self, claim: Object) -> bool:
        annotations: Object = claim["metadata"].get("annotations", {})
        return annotations.get(_PROVISIONER) == self._name and not claim["spec"].get("volumeName")

    def _is_released(self, volume: Object) -> bool:
        metadata, deletes = volume["metadata"], volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
        released = volume.get("status", {}).get("phase") == "Released" and not metadata.get("deletionTimestamp")
        return metadata.get("annotations", {}).get(PROVISIONED_BY) == self._name and deletes and released

    def _provision(self, claim: Object) -> None:
        metadata, spec = claim["metadata"], claim["spec"]
        made_by = self._kube.find(*_CLASS, spec["storageClassName"])
        if made_by is None or made_by["provisioner"] != self._name:
            return  # the class has another provisioner now, but may change back
        if spec.get("selector"):
            why = f'failed to provision volume with StorageClass "{spec["storageClassName"]}"'
            self._warn(claim, "ProvisioningFailed", f"{why}: claim Selector is not supported")
            return
        name = f"pvc-{metadata['uid']}"
        folder = f"{metadata['namespace']}-{metadata['name']}-{name}"
        (self._root / folder).mkdir(exist_ok=True)
        reference = {key: claim[key] for key in ("apiVersion", "kind")}
        reference |= {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion")}
        volume = {
            "apiVersion": _VOLUME[0],
            "kind": _VOLUME[1],
            "metadata": {"name": name, "annotations": {PROVISIONED_BY: self._name}},
            "spec": {
                "accessModes": spec["accessModes"],
                "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                "claimRef": reference,
                "mountOptions": made_by.get("mountOptions") or [],
                "nfs": {"server": self._server, "path": f"{self._path.rstrip('/')}/{folder}"},
                "persistentVolumeReclaimPolicy": made_by["reclaimPolicy"],
                "storageClassName": spec["storageClassName"],
            },
        }
        self._kube.create(volume)
        self._ctx.log(f"volume {name} provisioned at {folder}")

    def _delete(self, volume: Object) -> None:
        name, class_name = volume["metadata"]["name"], volume["spec"]["storageClassName"]
        folder = self._root / Path(volume["spec"]["nfs"]["path"]).name
        if folder.is_dir():  # missing if the volume is from another server
            made_by = self._kube.find(*_CLASS, class_name)
            if made_by is None:
                why = f'storageclasses.storage.k8s.io "{class_name}" not found'
                self._warn(volume, "VolumeFailedDelete", why)
                return
            _dispose(folder, made_by.get("parameters") or {})
        self._kube.delete(*_VOLUME, name)
        self._ctx.log(f"volume {name} deleted")

    def _warn(self, obj: Object, reason: str, message: str) -> None:
        """Records an event once per object and cause, because failed operations are retried."""
        key = (obj["metadata"]["uid"], message)
        if key not in self._reported:
            self._reported.add(key)
            events.record(self._kube, obj, "Warning", reason, message, {"component": self._name})


def _dispose(folder: Path, parameters: Object) -> None:
    """`onDelete` overrides `archiveOnDelete`. The default is to archive the folder."""
    on_delete = parameters.get("onDelete")
    if on_delete == "delete" or (on_delete != "retain" and parameters.get("archiveOnDelete") == "false"):
        shutil.rmtree(folder)
    elif on_delete != "retain":
        folder.rename(folder.with_name(f"archived-{folder.name}"))
