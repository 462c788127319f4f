"""Emulates external-provisioner and external-attacher for Azure Files and Azure Disk. A share is a folder here.

The real controller-manager decides what to provision, and binds claims. Folders outlive pods; all nodes share them.
"""

from __future__ import annotations

import logging
import shutil
import threading
from pathlib import Path

import httpx

from k8s.objects import Object
from simulator.cluster.azure_files import DRIVER, AzureFiles, NotMadeError
from simulator.kube.client import ApiError, KubeClient
from simulator.kube.informer import Informer
from simulator.kubelet.csi.claims import PROVISIONED_BY, SHARES, share_folder

_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
_TICK_S = 5.0
_log = logging.getLogger(__name__)


class Provisioner:
    """The provisioner of one cluster. Its threads run until `stop`."""

    def __init__(self, kube: KubeClient, folder: Path, files: AzureFiles) -> None:
        """`folder` is the folder of the cluster."""
        self._kube, self._folder, self._files = kube, folder, files
        self._wake, self._stopped = threading.Event(), threading.Event()
        self._claims = Informer(kube, "v1", "PersistentVolumeClaim", self._wake.set)
        self._volumes = Informer(kube, "v1", "PersistentVolume", self._wake.set)
        self._attachments = Informer(kube, "storage.k8s.io/v1", "VolumeAttachment", self._wake.set)
        threading.Thread(target=self._run, name="provisioner", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        self._wake.set()
        for informer in (self._claims, self._volumes, self._attachments):
            informer.stop()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._wake.wait(_TICK_S)
            self._wake.clear()
            try:
                found = (self._claims.items(), self._volumes.items(), self._attachments.items())
                step(self._kube, self._folder, self._files, *found)
            except (ApiError, httpx.HTTPError):  # the API server restarts, or an object was deleted
                self._stopped.wait(1)
            except Exception:  # noqa: BLE001 - one claim's fault must not stop others; it is logged
                _log.exception("provisioner")
                self._stopped.wait(1)


def step(
    kube: KubeClient,
    folder: Path,
    files: AzureFiles,
    claims: list[Object],
    volumes: list[Object],
    attachments: list[Object],
) -> None:
    there = {volume["metadata"]["name"] for volume in volumes}
    for claim in claims:
        name = f"pvc-{claim['metadata']['uid']}"
        if name not in there and _is_ours(claim):
            try:
                _provision(kube, folder, files, name, claim)
            except NotMadeError as error:
                files.record_failure(kube, claim, error)
    for volume in volumes:
        if _is_released(volume):
            shutil.rmtree(share_folder(folder, volume["metadata"]["name"]))
            kube.delete("v1", "PersistentVolume", volume["metadata"]["name"])
    for attachment in attachments:
        if attachment["spec"]["attacher"] in SHARES and not attachment.get("status", {}).get("attached"):
            body = {"status": {"attached": True}}
            name = attachment["metadata"]["name"]
            kube.patch("storage.k8s.io/v1", "VolumeAttachment", name, None, body, subresource="status")


def _is_ours(claim: Object) -> bool:
    """Returns whether the controller-manager requests a volume (with late binding, after a node is selected)."""
    metadata = claim["metadata"]
    waits = not claim["spec"].get("volumeName") and not metadata.get("deletionTimestamp")
    return waits and metadata.get("annotations", {}).get(_PROVISIONER) in SHARES


def _is_released(volume: Object) -> bool:
    made_here = volume["metadata"].get("annotations", {}).get(PROVISIONED_BY) in SHARES
    deletes = volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
    gone = volume.get("status", {}).get("phase") == "Released" and not volume["metadata"].get("deletionTimestamp")
    return made_here and deletes and gone


def _provision(kube: KubeClient, folder: Path, files: AzureFiles, name: str, claim: Object) -> None:
    metadata, spec = claim["metadata"], claim["spec"]
    driver = metadata["annotations"][_PROVISIONER]
    storage_class = kube.find("storage.k8s.io/v1", "StorageClass", spec["storageClassName"])
    if storage_class is None or kube.find("storage.k8s.io/v1", "CSIDriver", driver) is None:
        return  # class or driver disabled: the claim stays Pending
    parameters = storage_class.get("parameters") or {}
    source = {"driver": driver, "volumeHandle": name, "volumeAttributes": parameters}
    if driver == DRIVER:
        source = files.source(parameters, name, metadata["namespace"])
    share_folder(folder, name)
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    reference |= {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion")}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: driver}},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": reference,
            "csi": source,
            "mountOptions": storage_class.get("mountOptions") or [],
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "storageClassName": spec["storageClassName"],
            "volumeMode": spec.get("volumeMode", "Filesystem"),
        },
    }
    kube.create(volume)
