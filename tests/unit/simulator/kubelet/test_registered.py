from __future__ import annotations

from k8s.objects import Object
from simulator.kubelet.csi.registered import RegisteredDrivers
from tests.support.fake_kube import FakeKube
from tests.unit.simulator.kubelet.cluster import driver_pod

FILES, DISKS, BLOBS = "file.csi.azure.com", "disk.csi.azure.com", "blob.csi.azure.com"


def node(name: str, uid: str = "1") -> Object:
    return {"metadata": {"name": name, "uid": uid}}


def drivers(kube: FakeKube, name: str) -> list[str]:
    found = kube.find("storage.k8s.io/v1", "CSINode", name)
    assert found
    return [driver["name"] for driver in found["spec"]["drivers"]]


def registered(kube: FakeKube, *names: str) -> RegisteredDrivers:
    objects = [{"metadata": {"name": name}} for name in names]
    return RegisteredDrivers(kube.as_client(), lambda: objects)


def test_lists_the_blob_driver_only_where_its_plugin_is_ready() -> None:
    kube = FakeKube()
    csi_nodes = registered(kube, FILES, DISKS, BLOBS)
    csi_nodes.sync([node("n1"), node("n2", "2")], [driver_pod("n1"), driver_pod("n2", ready=False)])
    assert drivers(kube, "n1") == [BLOBS, DISKS, FILES]
    assert drivers(kube, "n2") == [DISKS, FILES]


def test_the_object_belongs_to_its_node_and_is_written_once() -> None:
    kube = FakeKube()
    csi_nodes = registered(kube, FILES)
    csi_nodes.sync([node("n1", "u-1")], [])
    writes = list(kube.writes)
    csi_nodes.sync([node("n1", "u-1")], [])
    assert kube.writes == writes
    owner = (kube.find("storage.k8s.io/v1", "CSINode", "n1") or {})["metadata"]["ownerReferences"]
    assert owner == [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u-1"}]
