from __future__ import annotations

import dataclasses
import datetime
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceNotFoundError
from azure.identity import DefaultAzureCredential
from azure.storage.blob import BlobServiceClient, ContainerClient, ContainerSasPermissions, generate_container_sas
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

from simulator.host.processes import leftovers
from tests.support.blob_account import (
    ACCOUNT,
    CONTAINER,
    CONTRIBUTOR,
    READER,
    BlobAccount,
    account_body,
    blob_account,
)
from tests.support.waiting import eventually

pytestmark = pytest.mark.simulator


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlobAccount]:
    with blob_account(tmp_path_factory.mktemp("blobs")) as account:
        yield account


@pytest.fixture
def account(started: BlobAccount) -> BlobAccount:
    started.settings()
    started.container(started.service_sas("cw")).upload_blob("weights", b"1234", overwrite=True)
    return started


def code(raised: pytest.ExceptionInfo[HttpResponseError]) -> str:
    found: str = getattr(raised.value, "error_code", "")
    return found


def names(container: ContainerClient) -> list[str]:
    return [blob.name for blob in container.list_blobs()]


def user_delegation_sas(account: BlobAccount, *, days: float = 2, **permissions: bool) -> str:
    now = datetime.datetime.now(datetime.UTC)
    with DefaultAzureCredential() as credential, BlobServiceClient(account.url, credential, retry_total=0) as client:
        key = client.get_user_delegation_key(now, now + datetime.timedelta(days=days))
    allowed = ContainerSasPermissions(**permissions)
    return generate_container_sas(
        "models", "data", user_delegation_key=key, permission=allowed, expiry=now + datetime.timedelta(hours=1)
    )


def test_a_service_sas_reads_and_lists(account: BlobAccount) -> None:
    container = account.container(account.service_sas("lr"))
    assert names(container) == ["weights"]
    assert container.download_blob("weights").readall() == b"1234"


def test_a_read_only_sas_cannot_write(account: BlobAccount) -> None:
    with pytest.raises(HttpResponseError) as raised:
        account.container(account.service_sas("rl")).upload_blob("more", b"")
    assert (raised.value.status_code, code(raised)) == (403, "AuthorizationPermissionMismatch")


def test_rejects_an_expired_sas(account: BlobAccount) -> None:
    with pytest.raises(HttpResponseError) as raised:
        names(account.container(account.service_sas(hours=-1)))
    assert (raised.value.status_code, code(raised)) == (403, "AuthorizationFailure")


def test_rejects_the_sas_of_another_container(account: BlobAccount) -> None:
    with pytest.raises(HttpResponseError) as raised:
        names(account.container(account.service_sas(container="other")))
    assert raised.value.status_code == 403


def test_a_new_key_invalidates_a_sas_of_the_old_one(account: BlobAccount) -> None:
    sas = account.service_sas("rwl")
    assert account.arm.call("POST", f"{ACCOUNT}/regenerateKey", {"keyName": "key1"}).status_code == 200

    def refused() -> bool:
        try:
            names(account.container(sas))
        except HttpResponseError as error:
            return (error.status_code, getattr(error, "error_code", "")) == (403, "AuthorizationFailure")
        return False

    eventually(refused, "Azurite knows the new key")
    names(account.container(account.service_sas("rl")))


def test_rejects_a_service_sas_without_shared_keys(account: BlobAccount) -> None:
    sas = account.service_sas()
    account.settings(allowSharedKeyAccess=False)
    with pytest.raises(HttpResponseError) as raised:
        names(account.container(sas))
    assert (raised.value.status_code, code(raised)) == (403, "KeyBasedAuthenticationNotPermitted")
    body = {"canonicalizedResource": "/blob/models/data", "signedResource": "c", "signedPermission": "rl"}
    refused = account.arm.call("POST", f"{ACCOUNT}/listServiceSas", body)
    assert account.arm.refusal(refused)[:2] == (403, "KeyBasedAuthenticationNotPermitted")


def test_a_user_delegation_sas_has_its_own_permissions(account: BlobAccount) -> None:
    role = account.assign(CONTRIBUTOR, CONTAINER)
    account.settings(allowSharedKeyAccess=False)
    container = account.container(user_delegation_sas(account, read=True, list=True))
    assert names(container) == ["weights"]
    with pytest.raises(HttpResponseError) as raised:
        container.upload_blob("more", b"")
    assert code(raised) == "AuthorizationPermissionMismatch"
    account.arm.call("DELETE", role)


def test_a_user_delegation_sas_is_limited_by_the_roles_of_its_signer(account: BlobAccount) -> None:
    sas = user_delegation_sas(account, read=True, write=True, create=True, list=True)
    with pytest.raises(HttpResponseError) as raised:
        names(account.container(sas))
    assert code(raised) == "AuthorizationPermissionMismatch", "Owner has no data actions"
    role = account.assign(READER, ACCOUNT)
    assert names(account.container(sas)) == ["weights"]
    with pytest.raises(HttpResponseError):
        account.container(sas).upload_blob("more", b"")
    account.arm.call("DELETE", role)


def test_rejects_a_user_delegation_key_for_more_than_seven_days(account: BlobAccount) -> None:
    with pytest.raises(HttpResponseError, match=r"a user delegation key expires within 7 days"):
        user_delegation_sas(account, days=7.1, read=True)


def test_rejects_a_forged_token(account: BlobAccount) -> None:
    mine = account.arm.server.tokens
    forged, expires = dataclasses.replace(mine, key=generate_private_key(65537, 2048)).issue(
        "https://storage.azure.com"
    )
    with pytest.raises(ClientAuthenticationError) as raised:
        names(account.container(FixedToken(forged, expires)))
    assert code(raised) == "InvalidAuthenticationInfo"


def test_rejects_a_missing_account(account: BlobAccount) -> None:
    url = f"{account.blobs.endpoint}/missing"
    with (
        ContainerClient(url, "data", account.service_sas(), connection_verify=str(account.blobs.ca_file)) as client,
        pytest.raises(ResourceNotFoundError, match=r"The storage account missing does not exist"),
    ):
        names(client)


def test_a_new_account_keeps_the_blobs_of_others(account: BlobAccount) -> None:
    """Azurite restarts for a new account."""
    sas, another = account.service_sas(), ACCOUNT.replace("models", "another")
    assert account.arm.put(another, account_body()).status_code == 202
    assert names(account.container(sas)) == ["weights"], "the request waits for the restart"
    account.arm.done()
    account.arm.call("DELETE", another)
    account.arm.done()
    assert names(account.container(sas)) == ["weights"]


def test_clearing_survives_a_restart_of_azurite(account: BlobAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    """If two accounts are deleted at once, Azurite restarts on another port for the others."""
    ports, listed = [], BlobServiceClient.list_containers

    def list_containers(client: BlobServiceClient) -> Any:
        ports.append(account.blobs.azurite.port)
        if len(ports) == 1:
            account.arm.put(ACCOUNT.replace("models", "another"), account_body())
            account.arm.done()
        return listed(client)

    monkeypatch.setattr(BlobServiceClient, "list_containers", list_containers)
    account.blobs.clear("models")
    assert len(set(ports)) == 2
    with pytest.raises(ResourceNotFoundError):
        names(account.container(account.service_sas()))
    account.arm.call("DELETE", ACCOUNT.replace("models", "another"))
    account.arm.done()
    account.blobs.create_container("models", "data")
    assert names(account.container(account.service_sas())) == []


def test_a_killed_azurite_restarts(account: BlobAccount) -> None:
    sas = account.service_sas("rcwl")
    for pid in leftovers():
        os.kill(pid, signal.SIGKILL)
    account.settings()  # unwritten blobs are lost, no containers
    account.container(sas).upload_blob("after", b"", overwrite=True)
    assert "after" in names(account.container(sas))


def test_a_recreated_container_is_empty(account: BlobAccount) -> None:
    account.arm.call("DELETE", CONTAINER)
    with pytest.raises(ResourceNotFoundError):
        names(account.container(account.service_sas()))
    account.arm.put(CONTAINER, {"properties": {}})
    assert names(account.container(account.service_sas())) == []


@dataclasses.dataclass
class FixedToken:
    token: str
    expires: int

    def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:
        return AccessToken(self.token, self.expires)
