"""Volumes of claims in a running cluster: blob containers by their SAS, shares by their class. In the file's order."""

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


def test_a_container_mounts_once_the_driver_is_there(cluster: AzureCluster) -> None:
    cluster.run("reader", "cat /data/shards/0", claim="tokens")
    cluster.waits_for("reader", "driver name blob.csi.azure.com not found in the list of registered CSI drivers")
    eventually(lambda: "FailedMount" in cluster.warnings("reader"), "an event tells it too")
    cluster.update(**BLOB_DRIVER)
    assert cluster.log("reader") == "17 tokens"


def test_a_pod_reads_through_a_sas_that_cannot_write(cluster: AzureCluster) -> None:
    cluster.run("careless", "cat /data/shards/0; ! touch /data/mine", claim="tokens")
    text = cluster.log("careless")
    assert text.startswith("17 tokens")
    assert "Read-only file system" in text
    with cluster.blobs("tokens") as blobs:
        assert [blob.name for blob in blobs.list_blobs()] == ["shards/0"]


def test_what_a_pod_wrote_is_in_the_container_when_it_has_ended(cluster: AzureCluster) -> None:
    cluster.create_container("checkpoints")
    cluster.mount_container("checkpoints", cluster.sas("checkpoints", "racwdl"))
    cluster.run("trainer", "mkdir /data/step10; echo weights >/data/step10/model.pt", claim="checkpoints")
    cluster.log("trainer")
    with cluster.blobs("checkpoints") as blobs:
        assert blobs.download_blob("step10/model.pt").readall() == b"weights\n"


@pytest.mark.parametrize(
    ("container", "key", "permissions", "hours", "words"),
    [
        ("expired", "azurestorageaccountsastoken", "rl", -1, f"{PIPELINE}[AuthenticationFailed]]"),
        pytest.param(
            *("unlisted", "azurestorageaccountsastoken", "r", 1, f"{PIPELINE}[AuthorizationPermissionMismatch]]"),
            marks=pytest.mark.long,
        ),
        pytest.param(
            *("misplaced", "azurestorageaccountkey", "rl", 1, "config error in azstorage [SAS key not provided]"),
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_sas_that_does_not_open(
    cluster: AzureCluster, container: str, key: str, permissions: str, hours: float, words: str
) -> None:
    cluster.update(**BLOB_DRIVER)
    cluster.create_container(container)
    cluster.mount_container(container, cluster.sas(container, permissions, hours=hours), key)
    cluster.run(container, "ls /data", claim=container)
    cluster.waits_for(container, words)
    cluster.mount_container(container, cluster.sas(container, "rl"))
    assert cluster.log(container) == ""


def test_a_container_that_is_not_there(cluster: AzureCluster) -> None:
    cluster.mount_container("missing", cluster.sas("missing", "rl"))
    cluster.run("missing", "ls /data", claim="missing")
    cluster.waits_for("missing", f"{PIPELINE}[ContainerNotFound]]")


def test_a_claim_of_a_share_is_bound_and_outlives_its_pods(cluster: AzureCluster) -> None:
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": "azurefile-csi"}
    cluster.apply("v1", "PersistentVolumeClaim", "home", spec=spec | {"resources": {"requests": {"storage": "5Gi"}}})
    cluster.run("first", "echo '{}' >/data/notebook.ipynb", claim="home")
    cluster.log("first")
    cluster.run("second", "cat /data/notebook.ipynb", claim="home")
    assert cluster.log("second") == "{}"


def test_a_disk_waits_for_its_first_pod(cluster: AzureCluster) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}}
    cluster.apply("v1", "PersistentVolumeClaim", "disk", spec=spec)  # of the default class
    cluster.run("owner", "echo mine >/data/file; cat /data/file", claim="disk")
    assert cluster.log("owner") == "mine"


def test_a_share_goes_with_its_claim(cluster: AzureCluster) -> None:
    kube = cluster.kube
    volume = kube.get("v1", "PersistentVolumeClaim", "home", "default")["spec"]["volumeName"]
    for pod in ("first", "second"):
        kube.delete("v1", "Pod", pod, "default")
    kube.delete("v1", "PersistentVolumeClaim", "home", "default")
    eventually(lambda: volume not in names(kube.list("v1", "PersistentVolume")), "the volume is gone", 60)


def test_a_new_machine_of_the_same_name_is_empty(cluster: AzureCluster) -> None:
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
