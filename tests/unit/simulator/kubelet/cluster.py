from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from config.data.blobfuse import DRIVER
from k8s.objects import Object
from simulator.kubelet.csi import blob
from simulator.kubelet.csi.claims import ClaimMounts, Mounted
from simulator.kubelet.errors import VolumeNotReady
from simulator.world.azure_services import BlobService
from tests.support.fake_container import FakeContainer
from tests.support.fake_kube import FakeKube

ACCOUNT = "olmodata"
CLIENT = "00000000-0000-0000-0000-00000000000d"
"""The client id of the managed identity for the service account `blobs`."""
BY_IDENTITY = {
    "containerName": "data",
    "protocol": "fuse2",
    "storageAccount": ACCOUNT,
    "clientID": CLIENT,
    "mountWithWorkloadIdentityToken": "true",
}
SAS = "sv=2024-11-04&sp={permissions}&se=2099-01-01T00:00:00Z&sr=c&sig=c2ln"


@dataclass
class FakeCloud:
    container: FakeContainer = field(default_factory=FakeContainer)
    refused: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    blobs: BlobService | None = None
    service: BlobService = BlobService("https://127.0.0.1:1/olmodata", Path("/ca.crt"))
    proxy: str = ""

    def at(self, cluster_id: str) -> FakeCloud:
        return self

    def blob_service(self, account: str) -> BlobService:
        if account != ACCOUNT:
            raise OSError(f"dial tcp: lookup {account}.blob.core.windows.net on 168.63.129.16:53: no such host")
        return self.service

    def names(self, cluster_id: str) -> list[str]:
        return []

    def issuer(self, cluster_id: str) -> str:
        return ""

    def entra(self, cluster_id: str) -> None:
        return None

    def storage_token(self, client_id: str, assertion: str) -> tuple[str, int]:
        if (client_id, assertion) != (CLIENT, "token of blobs"):
            raise PermissionError(f"AADSTS700213: {assertion}")
        return "storage", 4102444800

    def share_refusal(self, cluster_id: str, group: str, account: str, *, nfs: bool) -> str | None:
        return None

    def nfs_refusal(self, server: str, export: str) -> str | None:
        self.asked.append(f"{server}:{export}")
        return self.refused.get(server)

    def may_pull(self, cluster_id: str, image: str) -> str | None:
        self.asked.append(image)
        return self.refused.get(image)

    def connect(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def client(**arguments: Any) -> FakeContainer:
            assert arguments["account_url"] == self.service.url
            return self.container

        monkeypatch.setattr(blob, "ContainerClient", client)


def secret(**data: str) -> Object:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "sas", "namespace": "ai"}, "data": encoded}


def sas_secret(permissions: str = "racwdl") -> Object:
    return secret(azurestorageaccountname=ACCOUNT, azurestorageaccountsastoken=SAS.format(permissions=permissions))


def volume(driver: str = DRIVER, mode: str = "ReadWriteMany", options: tuple[str, ...] = (), **csi: Any) -> Object:
    source: Object = {
        "driver": driver,
        "volumeHandle": "handle",
        "volumeAttributes": {"containerName": "data", "protocol": "fuse2"},
        "nodeStageSecretRef": {"name": "sas", "namespace": "ai"},
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "ai-data", "annotations": {}},
        "spec": {"accessModes": [mode], "mountOptions": list(options), "csi": source | csi},
    }


CSI_DRIVER: Object = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "CSIDriver",
    "metadata": {"name": DRIVER},
    "spec": {"tokenRequests": [{"audience": "api://AzureADTokenExchange", "expirationSeconds": 3600}]},
}
CLAIM: Object = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "ai"},
    "spec": {"volumeName": "ai-data"},
    "status": {"phase": "Bound"},
}


def driver_pod(node: str, *, ready: bool = True, version: str = "v1.27.5") -> Object:
    image = f"mcr.microsoft.com/oss/v2/kubernetes-csi/blob-csi:{version}"
    return {
        "metadata": {"name": f"csi-blob-node-{node}", "namespace": "kube-system", "uid": f"driver-{node}"},
        "spec": {"nodeName": node, "containers": [{"name": "blob", "image": image}]},
        "status": {"conditions": [{"type": "Ready", "status": str(ready)}]},
    }


def pod(uid: str, node: str = "n1", **spec: Any) -> Object:
    container = {"name": "c", "image": "x.azurecr.io/olmo:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": uid, "namespace": "ai", "uid": uid},
        "spec": {"nodeName": node, "containers": [container], "volumes": volumes, **spec},
    }


@dataclass
class Cluster:
    folder: Path
    azure: FakeCloud = field(default_factory=FakeCloud)
    pods: list[Object] = field(default_factory=lambda: [driver_pod("n1"), driver_pod("n2")])
    kube: FakeKube = field(default_factory=lambda: FakeKube(CLAIM, volume(), sas_secret()))

    def __post_init__(self) -> None:
        self.claims = ClaimMounts(self.kube.as_client(), self.azure, self.folder, lambda: self.pods)

    def has(self, *objects: Mapping[str, Any]) -> None:
        for obj in objects:
            self.kube.replace(dict(obj))

    def lacks(self, kind: str, name: str, namespace: str = "ai") -> None:
        self.kube.delete("v1", kind, name, namespace)

    def events(self) -> list[str]:
        return [event["message"] for event in self.kube.list("v1", "Event")]

    def mount(self, uid: str = "p", node: str = "n1", *, read_only: bool = False, account: str = "blobs") -> Mounted:
        return self.claims.mount(pod(uid, node, serviceAccountName=account), "data", read_only=read_only)

    def failure(self) -> str:
        with pytest.raises(VolumeNotReady) as failed:
            self.mount()
        return str(failed.value)
