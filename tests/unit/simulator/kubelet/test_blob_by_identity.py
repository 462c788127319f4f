from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from simulator.azure.data_plane import DataPlane
from simulator.kubelet.csi import blob
from simulator.kubelet.csi.identity import PodIdentity
from simulator.kubelet.csi.mount import BlobMount
from tests.support.blob_account import (
    CONTAINER,
    CREDENTIAL,
    OTHER,
    READER,
    BlobAccount,
    blob_account,
)
from tests.unit.simulator.kubelet.cluster import BY_IDENTITY, volume

pytestmark = pytest.mark.simulator
SUBJECT, AUDIENCE = "system:serviceaccount:ai:blobs", "api://AzureADTokenExchange"


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlobAccount]:
    with blob_account(tmp_path_factory.mktemp("blobs")) as made:
        made.container(made.service_sas("cw")).upload_blob("shards/0", b"tokens", overwrite=True)
        made.settings(allowSharedKeyAccess=False)
        yield made


class Signed:
    def __init__(self, account: BlobAccount) -> None:
        self.account, self.issuer, self.ids = account, account.issuer(), account.identity()
        account.federate(issuer=self.issuer, subject=SUBJECT, audiences=[AUDIENCE])
        self.roles = [account.assign(READER, CONTAINER, self.ids["principalId"])]

    def mount(self, folder: Path, **claims: Any) -> BlobMount:
        payload = {"iss": self.issuer, "sub": SUBJECT, "aud": [AUDIENCE], "exp": time.time() + 600, **claims}
        token = jwt.encode(payload, "", "none")
        server = self.account.arm.server
        cloud = DataPlane(server.world, server.tokens)
        by = PodIdentity(cloud, self.ids["clientId"], lambda: token)
        attributes = {**BY_IDENTITY, "storageAccount": "models", "clientID": self.ids["clientId"]}
        made = volume(volumeAttributes=attributes)
        return blob.stage(made, {}, cloud, folder / "mount", read_only=False, report=self.errors.append, identity=by)

    errors: list[str] = []

    def refusal(self, folder: Path, **claims: Any) -> str:
        with pytest.raises(blob.StageError) as refused:
            self.mount(folder, **claims)
        return str(refused.value)

    def write(self, mounted: BlobMount) -> list[str]:
        self.errors.clear()
        (mounted.path / "step10").write_text("weights")
        mounted.flush()
        return list(self.errors)


@pytest.fixture
def signed(started: BlobAccount) -> Iterator[Signed]:
    made = Signed(started)
    yield made
    for role in made.roles:
        started.arm.call("DELETE", role)


def test_a_reader_cannot_write(signed: Signed, tmp_path: Path) -> None:
    mounted = signed.mount(tmp_path)
    assert (mounted.path / "shards/0").read_bytes() == b"tokens"
    assert signed.write(mounted) == ["writing step10 failed: AuthorizationPermissionMismatch"]


def test_rejects_an_identity_with_a_role_elsewhere(signed: Signed, tmp_path: Path) -> None:
    signed.account.arm.call("DELETE", signed.roles.pop())
    signed.roles.append(signed.account.assign(READER, OTHER, signed.ids["principalId"], number=3))
    assert "[BlockBlob::TestPipeline : [AuthorizationPermissionMismatch]]" in signed.refusal(tmp_path)


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": "system:serviceaccount:ai:default"},
        {"sub": "system:serviceaccount:other:blobs"},
        {"aud": ["https://kubernetes.default.svc"]},
        {"iss": "https://kubernetes.default.svc"},
    ],
)
def test_rejects_a_token_that_does_not_match_the_credential(
    signed: Signed, tmp_path: Path, claims: dict[str, Any]
) -> None:
    text = signed.refusal(tmp_path, **claims)
    assert (
        "WorkloadIdentityCredential authentication failed. AADSTS700213: No matching federated identity record" in text
    )
    assert str(claims.get("sub", SUBJECT)) in text


def test_rejects_a_deleted_identity(signed: Signed, tmp_path: Path) -> None:
    signed.account.arm.call("DELETE", CREDENTIAL.partition("/federated")[0])
    assert "AADSTS700016: Application with identifier" in signed.refusal(tmp_path)
    assert signed.account.identity() != signed.ids, "a new identity of that name has no roles"
