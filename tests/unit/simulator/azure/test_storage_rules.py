from __future__ import annotations

import pytest

from simulator.azure.blobs.policy import BlobRequest, Policy
from tests.support.arm import GROUP, SUBSCRIPTION, Arm
from tests.support.blob_account import ACCOUNT, CONTAINER, account_body
from tests.support.networks import make

SAS = {
    "canonicalizedResource": "/blob/models/data",
    "signedResource": "c",
    "signedPermission": "rl",
    "signedExpiry": "2027-01-01T00:00:00Z",
}


@pytest.fixture
def storage(group: Arm) -> Arm:
    make(group, ACCOUNT, account_body(minimumTlsVersion="TLS1_2"))
    make(group, CONTAINER, {"properties": {}})
    return group


def test_shows_an_account_and_its_container(storage: Arm) -> None:
    shown = storage.get(ACCOUNT)
    assert shown["sku"] == {"name": "Standard_LRS", "tier": "Standard"}
    asked = {"allowBlobPublicAccess": False, "minimumTlsVersion": "TLS1_2"}
    assert shown["properties"].items() >= asked.items()
    assert shown["properties"]["primaryEndpoints"] == {"blob": "https://127.0.0.1:1/models/"}
    assert storage.get(CONTAINER)["properties"]["publicAccess"] == "None"
    assert storage.blobs.containers == {"models/data"}


def test_an_update_keeps_the_random_keys(storage: Arm) -> None:
    first = storage.call("POST", f"{ACCOUNT}/listKeys").json()["keys"]
    assert [key["keyName"] for key in first] == ["key1", "key2"]
    assert storage.blobs.accounts["models"] == [key["value"] for key in first]
    make(storage, ACCOUNT, account_body())
    assert storage.call("POST", f"{ACCOUNT}/listKeys").json()["keys"] == first
    assert not [key["value"] for key in first if key["value"] in str(storage.get(ACCOUNT))]


def test_regenerates_a_key(storage: Arm) -> None:
    first = storage.call("POST", f"{ACCOUNT}/listKeys").json()["keys"]
    second = storage.call("POST", f"{ACCOUNT}/regenerateKey", {"keyName": "key2"}).json()["keys"]
    assert (first[0] == second[0], first[1] == second[1]) == (True, False)
    assert storage.blobs.accounts["models"] == [key["value"] for key in second]


def test_rejects_a_sas_of_a_revoked_delegation_key(storage: Arm) -> None:
    policy = Policy(storage.server.world, storage.server.tokens)

    def refusal(start: str) -> str:
        query = {"skoid": SUBSCRIPTION.object_id, "skt": start}
        found = policy.refusal(BlobRequest("GET", "/models/data/blob", query, ""))
        return found.code if found else ""

    by_role = "AuthorizationPermissionMismatch"
    assert refusal("2026-01-01T00:00:00Z") == by_role
    assert storage.call("POST", f"{ACCOUNT}/revokeUserDelegationKeys").status_code == 200
    assert refusal("2026-01-01T00:00:00Z") == "AuthenticationFailed"
    assert refusal("2099-01-01T00:00:00Z") == by_role, "a later key is valid"


def test_a_sku_without_zones_can_change(storage: Arm) -> None:
    assert storage.put(ACCOUNT, account_body() | {"sku": {"name": "Standard_GRS"}}).status_code == 200


def test_accepts_its_own_response_as_an_update(storage: Arm) -> None:
    shown = storage.get(ACCOUNT)
    assert make(storage, ACCOUNT, shown) == shown


def test_deletes_blobs_with_their_container_and_account(storage: Arm) -> None:
    assert storage.call("DELETE", CONTAINER).status_code == 200
    assert not storage.blobs.containers
    storage.put(CONTAINER, {"properties": {}})
    assert storage.call("DELETE", ACCOUNT).status_code == 200
    storage.done()
    assert (storage.blobs.accounts, storage.blobs.containers) == ({}, set())
    assert storage.call("GET", CONTAINER).status_code == 404


def test_deletes_the_account_with_its_group(storage: Arm) -> None:
    storage.call("DELETE", GROUP)
    storage.done()
    assert (storage.blobs.accounts, storage.blobs.containers) == ({}, set())


def test_issues_a_service_sas(storage: Arm) -> None:
    token = storage.call("POST", f"{ACCOUNT}/listServiceSas", SAS).json()["serviceSasToken"]
    assert token.startswith("sv=2015-04-05&sr=c&se=2027-01-01T00%3A00%3A00Z&sp=rl&sig=")
    again = storage.call("POST", f"{ACCOUNT}/listServiceSas", SAS | {"signedPermission": "lr"})
    assert again.json()["serviceSasToken"] == token, "the letters are sorted"
    other = storage.call("POST", f"{ACCOUNT}/listServiceSas", SAS | {"keyToSign": "key2"})
    assert other.json()["serviceSasToken"] != token
