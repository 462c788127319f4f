from __future__ import annotations

from pathlib import Path

import pytest

from k8s.objects import Object
from simulator.cluster import addons
from simulator.cluster.azure_files import AzureFiles
from simulator.cluster.provisioner import step
from tests.support.fake_kube import FakeKube

FILE = "file.csi.azure.com"
NO_REFUSAL = AzureFiles(lambda _group, _account, _nfs: None)


def claim(provisioner: str = FILE, storage_class: str = "azurefile-csi") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "home",
            "namespace": "ai",
            "uid": "1234",
            "annotations": {"volume.kubernetes.io/storage-provisioner": provisioner},
        },
        "spec": {
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "100Gi"}},
        },
    }


@pytest.fixture
def kube() -> FakeKube:
    made = FakeKube()
    addons.apply(made.as_client(), {"fileCSIDriver": {"enabled": True}, "diskCSIDriver": {"enabled": True}})
    return made


def reconcile(kube: FakeKube, folder: Path, files: AzureFiles = NO_REFUSAL) -> None:
    found = [kube.list("", kind) for kind in ("PersistentVolumeClaim", "PersistentVolume", "VolumeAttachment")]
    step(kube.as_client(), folder, files, *found)


def volumes(kube: FakeKube) -> list[Object]:
    return kube.list("v1", "PersistentVolume")


@pytest.mark.parametrize(("provisioner", "name"), [(FILE, "azurefile-csi"), ("disk.csi.azure.com", "managed-csi")])
def test_a_claim_gets_a_volume_of_its_size(kube: FakeKube, tmp_path: Path, provisioner: str, name: str) -> None:
    kube.create(claim(provisioner, name))
    reconcile(kube, tmp_path)
    reconcile(kube, tmp_path)
    (made,) = volumes(kube)
    assert made["metadata"]["name"] == "pvc-1234"
    assert made["spec"]["capacity"] == {"storage": "100Gi"}
    assert made["spec"]["claimRef"]["name"] == "home"
    assert made["spec"]["csi"]["driver"] == provisioner
    assert (tmp_path / "shares/pvc-1234").is_dir()


def test_ignores_a_claim_of_another_provisioner(kube: FakeKube, tmp_path: Path) -> None:
    kube.create(claim("nfs.example.com"))
    reconcile(kube, tmp_path)
    assert volumes(kube) == []


def test_a_claim_without_a_driver_stays_pending(tmp_path: Path) -> None:
    kube = FakeKube(claim())
    reconcile(kube, tmp_path)
    assert volumes(kube) == []


@pytest.mark.parametrize(("policy", "kept"), [("Delete", False), ("Retain", True)])
def test_reclaims_a_released_share_by_its_policy(kube: FakeKube, tmp_path: Path, policy: str, *, kept: bool) -> None:
    kube.patch("", "StorageClass", "azurefile-csi", None, {"reclaimPolicy": policy})
    kube.create(claim())
    reconcile(kube, tmp_path)
    kube.delete("", "PersistentVolumeClaim", "home", "ai")
    kube.patch("v1", "PersistentVolume", "pvc-1234", None, {"status": {"phase": "Released"}})
    reconcile(kube, tmp_path)
    assert bool(volumes(kube)) is kept
    assert (tmp_path / "shares/pvc-1234").is_dir() is kept


def test_reports_a_failed_share_once_and_retries(kube: FakeKube, tmp_path: Path) -> None:
    kube.patch("", "StorageClass", "azurefile-csi", None, {"parameters": {"storageAccount": "files1"}})
    kube.create(claim())
    lacking = AzureFiles(lambda _group, _account, _nfs: "AuthorizationFailed")
    reconcile(kube, tmp_path, lacking)
    reconcile(kube, tmp_path, lacking)
    (event,) = kube.list("v1", "Event")
    assert event["reason"] == "ProvisioningFailed"
    why = "rpc error: code = Internal desc = AuthorizationFailed"
    assert event["message"] == f'failed to provision volume with StorageClass "azurefile-csi": {why}'
    assert volumes(kube) == []
    reconcile(kube, tmp_path)
    assert len(volumes(kube)) == 1


def test_attaches_a_disk_immediately(kube: FakeKube, tmp_path: Path) -> None:
    spec = {"attacher": "disk.csi.azure.com", "nodeName": "n"}
    kube.create({"apiVersion": "", "kind": "VolumeAttachment", "metadata": {"name": "csi-1"}, "spec": spec})
    reconcile(kube, tmp_path)
    attachment = kube.find("", "VolumeAttachment", "csi-1")
    assert attachment is not None
    assert attachment["status"] == {"attached": True}
