"""Containers mounted by identity: who may do what where, and what the blob CSI driver is told."""

from __future__ import annotations

from typing import Any

from components.azure.roles import BLOB_DATA_CONTRIBUTOR, BLOB_DATA_READER
from tests.support.mocked_azure import ISSUER, PRINCIPAL, Azure
from tests.support.mocks import Recorder, program

H100 = "Standard_ND96isr_H100_v5"
OLMO = {
    "olmo-data": {"profile": "random-4k"},
    "olmo-checkpoints": {"permissions": "racwdlmp", "profile": "checkpoints"},
}
STORAGE: dict[str, Any] = {"auth": "identity", "containers": OLMO}
PLATFORM: dict[str, Any] = {"vmSku": H100, "storage": STORAGE}
TRAINING: dict[str, Any] = {"workloads": "olmo", "workloadOptions": {"olmo": {"prepare": False, "stopAt": 20}}}


def roles(recorder: Recorder) -> dict[str, str]:
    """What the identity may do, by container."""
    made = [each.inputs for each in recorder.registered if each.type.endswith(":RoleAssignment")]
    theirs = [each for each in made if each["principalId"] == PRINCIPAL]
    assert {each["principalType"] for each in theirs} == {"ServicePrincipal"}
    return {each["scope"].rpartition("/BlobContainer/")[2]: each["roleDefinitionId"][-36:] for each in theirs}


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
