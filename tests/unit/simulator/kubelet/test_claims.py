from __future__ import annotations

import errno
import os

import pytest

from simulator.kubelet.csi.claims import PROVISIONED_BY
from tests.support.fake_container import FakeContainer
from tests.unit.simulator.kubelet.cluster import SAS, Cluster, driver_pod, pod, sas_secret, secret, volume

NODES = ("n1", "n2")


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    cluster.azure.container.put("shard-0", b"tokens")
    return cluster


# -- requirements ------------------------------------------------------------------------------------------------------


def test_rejects_a_node_without_a_ready_driver(cluster: Cluster) -> None:
    cluster.pods = [driver_pod("n1", ready=False), driver_pod("n2")]
    assert cluster.failure() == (
        'MountVolume.MountDevice failed for volume "ai-data" : kubernetes.io/csi: attacher.MountDevice failed to '
        "create newCsiDriverClient: driver name blob.csi.azure.com not found in the list of registered CSI drivers"
    )


def test_rejects_a_missing_secret(cluster: Cluster) -> None:
    cluster.lacks("Secret", "sas")
    assert "fetching NodeStageSecretRef ai/sas failed" in cluster.failure()
    assert 'secrets "sas" not found' in cluster.failure()


def test_rejects_a_missing_or_unbound_claim(cluster: Cluster) -> None:
    cluster.kube.patch("v1", "PersistentVolumeClaim", "data", "ai", {"status": {"phase": "Pending"}})
    assert cluster.failure() == "PVC ai/data is not bound to a volume"
    cluster.lacks("PersistentVolumeClaim", "data")
    assert cluster.failure() == 'persistentvolumeclaim "data" not found'


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"azurestorageaccountname": "olmodata"}, "neither azurestorageaccountsastoken nor azurestorageaccountkey"),
        ({"azurestorageaccountsastoken": "sp=rl&sig=x"}, "config error in azstorage [account name not provided]"),
        (
            {"azurestorageaccountname": "olmodata", "azurestorageaccountkey": SAS.format(permissions="rl")},
            "decode account key: illegal base64 data at input byte 2] [azurestorageaccountkey holds a SAS; the driver "
            "reads that from azurestorageaccountsastoken]",
        ),
        (
            {"azurestorageaccountname": "elsewhere", "azurestorageaccountsastoken": "sp=rl&sig=x"},
            "lookup elsewhere.blob.core.windows.net on 168.63.129.16:53: no such host",
        ),
    ],
)
def test_rejects_an_invalid_secret(cluster: Cluster, keys: dict[str, str], words: str) -> None:
    cluster.has(secret(**keys))
    assert words in cluster.failure()
    assert "rpc error: code = Internal desc = Mount failed with error:" in cluster.failure()


def test_rejects_a_sas_that_cannot_list(cluster: Cluster) -> None:
    cluster.azure.container.permissions = "r"
    cluster.has(sas_secret("r"))
    assert "AuthorizationPermissionMismatch" in cluster.failure()
    assert "blobfuse2 lists the container as it mounts, which needs l" in cluster.failure()


def test_rejects_a_volume_without_a_container(cluster: Cluster) -> None:
    cluster.has(volume(volumeAttributes={"protocol": "fuse2"}))
    assert "could not find containerName from attributes(map[protocol:fuse2]) or volumeID(handle)" in cluster.failure()


# -- write access ------------------------------------------------------------------------------------------------------


def test_a_sas_without_write_access_mounts_read_only(cluster: Cluster) -> None:
    cluster.azure.container = FakeContainer("rl", shard=b"1")
    cluster.has(sas_secret("rl"))
    assert cluster.mount().read_only


@pytest.mark.parametrize(
    "made",
    [volume(mode="ReadOnlyMany"), volume(readOnly=True), volume(options=("--read-only",)), volume(options=("-o ro",))],
)
def test_a_read_only_volume_mounts_read_only(cluster: Cluster, made: dict[str, object]) -> None:
    cluster.has(made)
    assert cluster.mount().read_only


def test_a_rejected_write_creates_one_event_of_the_pod(cluster: Cluster) -> None:
    cluster.pods.append(pod("p"))
    (cluster.mount().path / "step10").write_text("weights")
    cluster.azure.container.permissions = ""
    cluster.claims.flush(pod("p"))
    cluster.claims.flush(pod("p"))
    assert cluster.events() == ['volume "ai-data": writing step10 failed: AuthorizationPermissionMismatch']


# -- one mount per node ------------------------------------------------------------------------------------------------


def test_pods_of_a_node_share_a_mount_but_nodes_do_not(cluster: Cluster) -> None:
    first, second, other = cluster.mount("a"), cluster.mount("b"), cluster.mount("c", "n2")
    assert first.path == second.path != other.path


def test_reads_a_changed_secret_once_no_pod_uses_the_volume(cluster: Cluster) -> None:
    cluster.mount("a")
    cluster.lacks("Secret", "sas")
    cluster.mount("b")
    cluster.claims.keep([], NODES)
    assert "fetching NodeStageSecretRef" in cluster.failure()


def test_deletes_the_mount_with_its_node(cluster: Cluster) -> None:
    path = cluster.mount("a").path
    cluster.claims.keep([], NODES)
    assert path.exists(), "the next pod uses it"
    cluster.claims.keep([], ["n2"])
    assert not path.exists()


def test_the_next_pod_of_a_node_sees_the_current_container(cluster: Cluster) -> None:
    path = cluster.mount("a").path
    (path / "step10").write_text("weights")
    cluster.claims.flush(pod("a"))
    cluster.claims.keep([], NODES)
    cluster.azure.container.put("shard-1", b"more")
    cluster.azure.container.delete_blob("step10")
    again = cluster.mount("b").path
    assert sorted(file.name for file in again.iterdir()) == ["shard-0", "shard-1"]
    (again / "step20").write_text("weights")
    cluster.claims.flush(pod("b"))
    assert cluster.azure.container.text()["step20"] == "weights"


def test_deletes_files_that_were_not_uploaded_with_the_last_pod(cluster: Cluster) -> None:
    (cluster.mount("a").path / "step10").write_text("weights")
    cluster.azure.container.permissions = "rl"
    cluster.claims.flush(pod("a"))
    cluster.claims.keep([], NODES)
    cluster.azure.container.permissions = "racwdl"
    assert not (cluster.mount("b").path / "step10").exists()


def test_does_not_upload_files_of_a_killed_simulator(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    left = cluster.folder / "mounts/n1/ai-data/of-another-container"
    left.parent.mkdir(parents=True)
    left.write_text("x")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", refuse)
        assert f"the simulator cannot empty {left.parent}, remove it: [Errno 13] Permission denied" in cluster.failure()
    cluster.mount()
    cluster.claims.flush(pod("p"))
    assert cluster.azure.container.text() == {"shard-0": "tokens"}


# -- shares ------------------------------------------------------------------------------------------------------------


def share(provisioner: str = "file.csi.azure.com") -> dict[str, object]:
    made = volume(driver=provisioner)
    made["metadata"]["annotations"] = {PROVISIONED_BY: provisioner}
    return made


def test_a_share_is_one_folder_for_all_nodes_and_outlives_its_pods(cluster: Cluster) -> None:
    driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "file.csi.azure.com"}}
    cluster.has(share(), driver)
    (cluster.mount("a").path / "notebook.ipynb").write_text("{}")
    cluster.claims.keep([], NODES)
    assert (cluster.mount("b", "n2").path / "notebook.ipynb").exists()


def test_rejects_other_drivers_by_name(cluster: Cluster) -> None:
    cluster.has(volume(driver="secrets-store.csi.k8s.io"))
    assert "the simulator cannot mount secrets-store.csi.k8s.io" in cluster.failure()


# -- NFS ---------------------------------------------------------------------------------------------------------------


def exported(server: str = "10.1.0.4", path: str = "/exports/ai", **more: object) -> dict[str, object]:
    made = volume()
    del made["spec"]["csi"]
    made["spec"]["nfs"] = {"server": server, "path": path, **more}
    return made


def test_an_nfs_export_is_one_folder_for_all_nodes_and_outlives_its_pods(cluster: Cluster) -> None:
    cluster.has(exported(path="/exports/ai/team"))
    (cluster.mount("a").path / "note").write_text("mine")
    cluster.claims.keep([], NODES)
    assert (cluster.mount("b", "n2").path / "note").exists()
    parent = cluster.claims.mount_export({"server": "10.1.0.4", "path": "/exports/ai"})
    assert (parent.path / "team/note").exists()


def test_mounts_an_nfs_export_read_only(cluster: Cluster) -> None:
    cluster.has(exported(readOnly=True))
    assert cluster.mount().read_only


@pytest.mark.parametrize("where", [{"server": "..", "path": "/shares"}, {"path": "/../../../etc"}])
def test_rejects_an_nfs_export_outside_of_the_clusters_folder(cluster: Cluster, where: dict[str, str]) -> None:
    cluster.has(exported(**where))
    assert "the simulator does not follow links out of a volume" in cluster.failure()
