from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.azure_cluster import AzureCluster
from tests.support.world import World, eventually, names

pytestmark = pytest.mark.simulator
BLOB_DRIVER = {"storageProfile": {"blobCSIDriver": {"enabled": True}}}
PIPELINE = "failed to authenticate azstorage credentials with error [BlockBlob::TestPipeline : "


@pytest.fixture(scope="module")
def cluster(world: World) -> Iterator[AzureCluster]:
    made = AzureCluster(world, "volumes")
    made.create()
    made.create_container("tokens")
    with made.blobs("tokens") as blobs:
        blobs.upload_blob("shards/0", b"17 tokens", overwrite=True)
    made.mount_container("tokens", made.sas("tokens", "rl"))
    yield made
    made.delete()


def test_mounting_a_container_needs_the_driver(cluster: AzureCluster) -> None:
    cluster.run("reader", "cat /data/shards/0", claim="tokens")
    cluster.waits_for("reader", "driver name blob.csi.azure.com not found in the list of registered CSI drivers")
    eventually(lambda: "FailedMount" in cluster.warnings("reader"), "an event reports it")
    cluster.update(**BLOB_DRIVER)
    assert cluster.log("reader") == "17 tokens"


def test_files_of_an_ended_pod_are_in_the_container(cluster: AzureCluster) -> None:
    cluster.create_container("checkpoints")
    cluster.mount_container("checkpoints", cluster.sas("checkpoints", "racwdl"))
    cluster.run("trainer", "mkdir /data/step10; echo weights >/data/step10/model.pt", claim="checkpoints")
    cluster.log("trainer")
    with cluster.blobs("checkpoints") as blobs:
        assert blobs.download_blob("step10/model.pt").readall() == b"weights\n"


def test_a_pod_with_an_expired_sas_waits_for_a_new_one(cluster: AzureCluster) -> None:
    cluster.create_container("expired")
    cluster.mount_container("expired", cluster.sas("expired", "rl", hours=-1))
    cluster.run("expired", "ls /data", claim="expired")
    cluster.waits_for("expired", f"{PIPELINE}[AuthenticationFailed]]")
    cluster.mount_container("expired", cluster.sas("expired", "rl"))
    assert cluster.log("expired") == ""


def test_a_new_machine_with_the_name_of_a_deleted_one_is_empty(cluster: AzureCluster) -> None:
    host = [{"name": "data", "hostPath": {"path": "/mnt/work", "type": "DirectoryOrCreate"}}]
    mounts = [{"name": "data", "mountPath": "/data"}]
    script = {"name": "main", "image": "nccl-test", "volumeMounts": mounts}
    pods = {"writer": "echo kept >/data/file", "neighbour": "cat /data/file", "stranger": "ls /data"}
    for name in ("writer", "neighbour"):
        cluster.run(name, "", volumes=host, containers=[script | {"command": ["bash", "-ec", pods[name]]}])
        text = cluster.log(name)
    assert text == "kept"
    (node,) = names(cluster.kube.list("v1", "Node"))
    cluster.kube.delete("v1", "Node", node)
    cluster.update(**BLOB_DRIVER)
    assert names(cluster.kube.list("v1", "Node")) == [node]
    cluster.run("stranger", "", volumes=host, containers=[script | {"command": ["bash", "-ec", pods["stranger"]]}])
    assert cluster.log("stranger") == ""
