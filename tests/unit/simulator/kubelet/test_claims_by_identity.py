from __future__ import annotations

from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError

from simulator.kubelet.csi import identity
from tests.support.fake_container import refused
from tests.unit.simulator.kubelet.cluster import BY_IDENTITY, CSI_DRIVER, Cluster, driver_pod, pod, volume


def by_identity(mode: str = "ReadWriteMany", **attributes: str) -> dict[str, Any]:
    made = volume(mode=mode, volumeAttributes=BY_IDENTITY | attributes)
    del made["spec"]["csi"]["nodeStageSecretRef"]
    return made


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    cluster.lacks("Secret", "sas")
    cluster.has(by_identity(), CSI_DRIVER)
    cluster.azure.container.put("shard-0", b"tokens")
    return cluster


def test_mounts_without_a_secret(cluster: Cluster) -> None:
    mounted = cluster.mount()
    assert (mounted.path / "shard-0").read_bytes() == b"tokens"
    (mounted.path / "step10").write_text("weights")
    cluster.claims.flush(pod("p"))
    assert cluster.azure.container.text()["step10"] == "weights"


def test_each_pod_of_a_node_has_its_own_mount(cluster: Cluster) -> None:
    first, second = cluster.mount("a"), cluster.mount("b")
    assert first.path != second.path
    cluster.claims.keep(["b"], ["n1"])
    assert (first.path.exists(), second.path.exists()) == (False, True)


def test_a_missing_role_has_the_error_of_blobfuse2(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise refused(403, "AuthorizationPermissionMismatch")

    monkeypatch.setattr(cluster.azure.container, "list_blobs", refuse)
    words = cluster.failure()
    assert words.startswith(
        'MountVolume.SetUp failed for volume "ai-data" : rpc error: code = Internal desc = Mount failed'
    )
    assert "[BlockBlob::TestPipeline : [AuthorizationPermissionMismatch]]" in words


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            driver_pod("n1", version="v1.26.16"),
            "[the driver, v1.26.16, would have the identity fetch the key",
        ),
        (driver_pod("n1", version="v1.24.1"), "[the driver, v1.24.1, would have the identity fetch the key"),
        (by_identity(mountWithWorkloadIdentityToken="false"), "would have the identity fetch the key of account"),
        (by_identity(clientID=""), "mountWithWorkloadIdentityToken is true but clientID is not specified"),
        ({**CSI_DRIVER, "spec": {}}, "service account token is empty"),
    ],
    ids=["older driver", "oldest driver", "without the attribute", "without an identity", "no token request"],
)
def test_rejects_a_mount_without_the_pods_token(cluster: Cluster, change: dict[str, Any], words: str) -> None:
    if "kind" in change:
        cluster.has(change)
    else:
        cluster.pods = [change]
    assert words in cluster.failure()


def test_signs_in_with_the_pods_token(cluster: Cluster) -> None:
    def signed_in(account: str) -> str:
        signer = identity.of_pod(
            by_identity(), pod("p", serviceAccountName=account), cluster.kube.as_client(), cluster.azure
        )
        return signer.get_token().token

    assert signed_in("blobs") == "storage"
    with pytest.raises(ClientAuthenticationError, match="authentication failed. AADSTS700213: token of default"):
        signed_in("default")
