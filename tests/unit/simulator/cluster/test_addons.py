from __future__ import annotations

from typing import Any

from simulator.cluster import addons
from tests.support.fake_kube import FakeKube

DEFAULT = {"fileCSIDriver": {"enabled": True}, "diskCSIDriver": {"enabled": True}, "blobCSIDriver": None}
WITH_BLOB = DEFAULT | {"blobCSIDriver": {"enabled": True}}


def names(kube: FakeKube, kind: str) -> list[str]:
    return [obj["metadata"]["name"] for obj in kube.list("", kind)]


def applied(profile: dict[str, Any], kube: FakeKube | None = None) -> FakeKube:
    found = kube or FakeKube()
    addons.apply(found.as_client(), profile)
    return found


def test_every_cluster_has_storage_classes_for_files_and_disks() -> None:
    kube = applied(DEFAULT)
    assert names(kube, "StorageClass") == [
        "azurefile",
        "azurefile-csi",
        "azurefile-csi-premium",
        "azurefile-premium",
        "default",
        "managed",
        "managed-csi",
        "managed-csi-premium",
        "managed-csi-premium-v2",
        "managed-premium",
    ]
    assert names(kube, "CSIDriver") == ["disk.csi.azure.com", "file.csi.azure.com"]
    assert names(kube, "DaemonSet") == []


def test_the_blob_node_plugin_tolerates_all_taints() -> None:
    plugin = applied(WITH_BLOB).find("apps/v1", "DaemonSet", "csi-blob-node", "kube-system")
    assert plugin is not None
    assert plugin["spec"]["template"]["spec"]["tolerations"] == [{"operator": "Exists"}]


def test_deletes_a_disabled_add_on_but_no_other_objects() -> None:
    own = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "mine"}, "provisioner": "x"}
    kube = applied(DEFAULT, applied(WITH_BLOB, FakeKube(own)))
    assert names(kube, "DaemonSet") == []
    assert "azureblob-fuse-premium" not in names(kube, "StorageClass")
    assert "mine" in names(kube, "StorageClass")
