from __future__ import annotations

import pytest

from simulator.kubelet.csi.claims import PROVISIONED_BY
from tests.unit.simulator.kubelet.cluster import Cluster, volume

FILES = "file.csi.azure.com"
SERVER = "files1.privatelink.file.core.windows.net"
HANDLE = "ai#files1#pvcn-1234###ai"


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    attributes = {"protocol": "nfs", "storageAccount": "files1", "server": SERVER}
    share = volume(FILES, options=("nconnect=4", "noresvport"), volumeHandle=HANDLE, volumeAttributes=attributes)
    share["metadata"]["annotations"][PROVISIONED_BY] = FILES
    cluster.has(share)
    cluster.has({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": FILES}})
    return cluster


def test_mounts_a_reachable_share_without_a_secret(cluster: Cluster) -> None:
    cluster.lacks("Secret", "sas")
    assert cluster.mount().path.is_dir()
    assert cluster.azure.asked == [f"{SERVER}:/files1/pvcn-1234"]


def test_an_unreachable_share_has_the_error_of_mount(cluster: Cluster) -> None:
    cluster.azure.refused[SERVER] = f"mount.nfs: Failed to resolve server {SERVER}: Name or service not known"
    error = cluster.failure()
    assert error.startswith(
        'MountVolume.MountDevice failed for volume "ai-data" : rpc error: code = Internal desc = '
        f"volume({HANDLE}) mount {SERVER}:/files1/pvcn-1234 on /var/lib/kubelet/plugins/kubernetes.io/csi/{FILES}/"
    )
    assert "-t nfs -o nconnect=4,noresvport,vers=4,minorversion=1,sec=sys" in error
    assert f"Output: mount.nfs: Failed to resolve server {SERVER}: Name or service not known" in error
