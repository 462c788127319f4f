from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from k8s.objects import Object
from simulator.operators.nfs_subdir import Provisioner
from tests.support.fake_kube import FakeKube
from tests.unit.simulator.operators.host_pod import HostPod

NAME = "k8s-sigs.io/pokprod-nfs-subdir-external-provisioner"
FOLDER = "ai-team-pvc-1234"


def storage_class(**parameters: str) -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "shared"},
        "provisioner": NAME,
        "reclaimPolicy": "Delete",
        "parameters": {"archiveOnDelete": "true"} | parameters,
    }


def claim(provisioner: str = NAME, **spec: object) -> Object:
    annotations = {"volume.beta.kubernetes.io/storage-provisioner": provisioner}
    sizes = {"requests": {"storage": "100Gi"}}
    own = {"storageClassName": "shared", "accessModes": ["ReadWriteMany"], "resources": sizes}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "team", "namespace": "ai", "uid": "1234", "annotations": annotations},
        "spec": own | spec,
    }


@dataclass
class NfsServer:
    folder: Path
    kube: FakeKube

    def step(self) -> None:
        env = {"PROVISIONER_NAME": NAME, "NFS_SERVER": "10.1.0.4", "NFS_PATH": "/exports/ai"}
        Provisioner(HostPod(self.kube, environment=env, folder=self.folder.parent).as_pod_context()).step()

    def release(self) -> None:
        """Releases the volume like the controller-manager after its claim's deletion."""
        self.kube.delete("v1", "PersistentVolumeClaim", "team", "ai")
        self.kube.patch("v1", "PersistentVolume", "pvc-1234", None, {"status": {"phase": "Released"}})

    def folders(self) -> list[str]:
        return sorted(each.name for each in self.folder.iterdir())

    def events(self) -> list[tuple[str, str]]:
        return [(event["reason"], event["message"]) for event in self.kube.list("v1", "Event")]


@pytest.fixture
def server(tmp_path: Path) -> NfsServer:
    (folder := tmp_path / "persistentvolumes").mkdir()
    return NfsServer(folder, FakeKube(storage_class()))


def test_a_claim_gets_a_folder_on_the_server(server: NfsServer) -> None:
    server.kube.create(claim())
    server.step()
    server.step()
    (made,) = server.kube.list("v1", "PersistentVolume")
    assert server.folders() == [FOLDER]
    assert made["spec"]["nfs"] == {"server": "10.1.0.4", "path": f"/exports/ai/{FOLDER}"}
    assert made["spec"]["claimRef"]["uid"] == "1234"
    assert made["spec"]["capacity"] == {"storage": "100Gi"}


@pytest.mark.parametrize("other", [claim("file.csi.azure.com"), claim(volumeName="mine")])
def test_ignores_claims_of_other_provisioners_and_bound_claims(server: NfsServer, other: Object) -> None:
    server.kube.create(other)
    server.step()
    assert server.folders() == []


def test_rejects_a_claim_with_a_selector_once(server: NfsServer) -> None:
    server.kube.create(claim(selector={"matchLabels": {"a": "b"}}))
    server.step()
    why = 'failed to provision volume with StorageClass "shared": claim Selector is not supported'
    assert server.events() == [("ProvisioningFailed", why)]
    assert server.folders() == []


@pytest.mark.parametrize(
    ("parameters", "left"),
    [
        ({}, [f"archived-{FOLDER}"]),
        ({"archiveOnDelete": "false"}, []),
        ({"onDelete": "retain"}, [FOLDER]),
        ({"onDelete": "delete"}, []),
    ],
)
def test_archives_keeps_or_deletes_a_released_folder_by_its_class(
    server: NfsServer, parameters: dict[str, str], left: list[str]
) -> None:
    server.kube.apply(storage_class(**parameters))
    server.kube.create(claim())
    server.step()
    (server.folder / FOLDER / "notes").write_text("mine")
    server.release()
    server.step()
    assert server.folders() == left
    assert server.kube.list("v1", "PersistentVolume") == []


def test_keeps_a_volume_with_the_policy_retain(server: NfsServer) -> None:
    server.kube.patch("", "StorageClass", "shared", None, {"reclaimPolicy": "Retain"})
    server.kube.create(claim())
    server.step()
    server.release()
    server.step()
    assert server.folders() == [FOLDER]
    assert server.kube.list("v1", "PersistentVolume")


def test_keeps_a_folder_whose_class_is_missing(server: NfsServer) -> None:
    server.kube.create(claim())
    server.step()
    server.release()
    server.kube.delete("", "StorageClass", "shared")
    server.step()
    assert server.events() == [("VolumeFailedDelete", 'storageclasses.storage.k8s.io "shared" not found')]
    assert server.folders() == [FOLDER]


def test_deletes_a_volume_without_a_folder(server: NfsServer) -> None:
    server.kube.create(claim())
    server.step()
    server.release()
    (server.folder / FOLDER).rmdir()
    server.step()
    assert server.kube.list("v1", "PersistentVolume") == []
