"""Containers mounted by identity: who may do what where, and what the blob CSI driver is told."""

from __future__ import annotations

from typing import Any

import pytest

from components.roles import BLOB_DATA_CONTRIBUTOR, BLOB_DATA_READER
from tests.support.mocked_azure import CLIENT, ISSUER, PRINCIPAL, Azure
from tests.support.mocks import Recorder, program

H100 = "Standard_ND96isr_H100_v5"
OLMO = {
    "olmo-data": {"profile": "random-4k"},
    "olmo-checkpoints": {"permissions": "racwdlmp", "profile": "checkpoints"},
}
STORAGE: dict[str, Any] = {"auth": "identity", "containers": OLMO}
PLATFORM: dict[str, Any] = {"vmSku": H100, "storage": STORAGE}
TRAINING: dict[str, Any] = {"workloads": "olmo", "workloadOptions": {"olmo": {"prepare": False, "stopAt": 20}}}


@pytest.fixture(scope="module")
def declared() -> Recorder:
    return program({**PLATFORM, **TRAINING})


def roles(recorder: Recorder) -> dict[str, str]:
    """What the identity may do, by container."""
    made = [each.inputs for each in recorder.registered if each.type.endswith(":RoleAssignment")]
    theirs = [each for each in made if each["principalId"] == PRINCIPAL]
    assert {each["principalType"] for each in theirs} == {"ServicePrincipal"}
    return {each["scope"].rpartition("/BlobContainer/")[2]: each["roleDefinitionId"][-36:] for each in theirs}


def test_the_service_account_is_the_identity_by_the_clusters_word(declared: Recorder) -> None:
    identity, credential = declared.one(":UserAssignedIdentity"), declared.one(":FederatedIdentityCredential")
    assert identity.inputs["resourceName"] == "ai-on-aks-test-ai"
    assert credential.inputs["resourceName"] == identity.inputs["resourceName"]
    assert credential.inputs["issuer"] == ISSUER
    assert credential.inputs["subject"] == "system:serviceaccount:ai:blobs"
    assert credential.inputs["audiences"] == ["api://AzureADTokenExchange"]
    assert declared.one(":ServiceAccount", "blobs").inputs["metadata"] == {
        "name": "blobs",
        "namespace": "ai",
        "annotations": {"azure.workload.identity/client-id": CLIENT},
    }


def test_its_roles_are_on_containers_and_say_no_more_than_their_permissions(declared: Recorder) -> None:
    assert roles(declared) == {"olmo-data": BLOB_DATA_READER, "olmo-checkpoints": BLOB_DATA_CONTRIBUTOR}


def test_the_cluster_issues_tokens_that_entra_trades(declared: Recorder) -> None:
    cluster = declared.one(":ManagedCluster").inputs
    assert cluster["oidcIssuerProfile"] == {"enabled": True}
    assert cluster["securityProfile"] == {"workloadIdentity": {"enabled": True}}


def test_the_driver_is_told_whose_token_to_mount_with_and_no_secret(declared: Recorder) -> None:
    csi = declared.one(":PersistentVolume", "volume-olmo-data").inputs["spec"]["csi"]
    assert csi["volumeAttributes"] == {
        "protocol": "fuse2",
        "storageAccount": declared.one(":StorageAccount").inputs["accountName"],
        "containerName": "olmo-data",
        "clientID": CLIENT,
        "mountWithWorkloadIdentityToken": "true",
    }
    assert "nodeStageSecretRef" not in csi
    assert declared.names(":Secret") == []


def test_pods_that_mount_run_under_that_account(declared: Recorder) -> None:
    assert declared.one(":Job", "olmo").inputs["spec"]["template"]["spec"]["serviceAccountName"] == "blobs"


def test_a_sas_needs_no_account() -> None:
    signed: dict[str, Any] = {"auth": "sas", "containers": OLMO | {"olmo-data": {"upload": True}}}
    recorder = program({**PLATFORM, **TRAINING, "storage": signed})
    assert "serviceAccountName" not in recorder.one(":Job", "olmo").inputs["spec"]["template"]["spec"]
    assert recorder.names(":UserAssignedIdentity") == []


def test_a_stack_on_anothers_platform_has_an_identity_with_rights_to_what_it_mounts() -> None:
    more = STORAGE | {"containers": OLMO | {"secrets": {}}}
    platform = program(PLATFORM | {"storage": more}, stack="dev")
    lodger = program({"platformStack": "dev", **TRAINING}, Azure(stacks={"dev": platform}), "mine")
    assert lodger.one(":UserAssignedIdentity").inputs["resourceName"] == "ai-on-aks-dev-mine"
    credential = lodger.one(":FederatedIdentityCredential").inputs
    assert (credential["issuer"], credential["subject"]) == (ISSUER, "system:serviceaccount:mine:blobs")
    assert roles(lodger) == {"olmo-data": BLOB_DATA_READER, "olmo-checkpoints": BLOB_DATA_CONTRIBUTOR}
    assert lodger.names(":Secret") == []


def test_another_way_in_is_another_volume() -> None:
    """A claim cannot be changed, nor a volume's source; pods follow the claim's name."""

    def claim(auth: str) -> str:
        recorder = program({**PLATFORM, "storage": {"auth": auth, "containers": {"data": {}}}})
        name: str = recorder.one(":PersistentVolumeClaim").inputs["metadata"]["name"]
        return name

    assert claim("identity") != claim("sas")
