"""Storage accounts and containers as Resource Manager has them; the blob service behind them only takes notes."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.azure.blobs.policy import BlobRequest, Policy
from tests.support.arm import GROUP, SUBSCRIPTION, Arm
from tests.support.blob_account import ACCOUNT, CONTAINER, account_body

SAS = {
    "canonicalizedResource": "/blob/models/data",
    "signedResource": "c",
    "signedPermission": "rl",
    "signedExpiry": "2027-01-01T00:00:00Z",
}


def account_path(name: str, group: str = GROUP) -> str:
    return f"{group}/providers/Microsoft.Storage/storageAccounts/{name}"


@pytest.fixture
def storage(arm: Arm) -> Arm:
    """A subscription with a group, and the account `models` with the container `data` in it."""
    assert arm.put(GROUP, {"location": "eastus"}).status_code == 201
    assert arm.put(ACCOUNT, account_body(minimumTlsVersion="TLS1_2")).status_code == 202
    arm.done()
    assert arm.put(CONTAINER, {"properties": {}}).status_code == 201
    return arm


def test_account_and_container_as_they_are_shown(storage: Arm) -> None:
    """What else there is, recorded runs say (tests/contract/azure_models/recorded.yaml)."""
    shown = storage.get(ACCOUNT)
    assert shown["sku"] == {"name": "Standard_LRS", "tier": "Standard"}
    asked = {"allowBlobPublicAccess": False, "minimumTlsVersion": "TLS1_2"}
    assert shown["properties"].items() >= asked.items()
    assert shown["properties"]["primaryEndpoints"] == {"blob": "https://127.0.0.1:1/models/"}
    assert storage.get(CONTAINER)["properties"]["publicAccess"] == "None"
    assert storage.blobs.containers == {"models/data"}


def test_keys_are_random_and_kept(storage: Arm) -> None:
    first = storage.call("POST", f"{ACCOUNT}/listKeys").json()["keys"]
    assert [key["keyName"] for key in first] == ["key1", "key2"]
    assert storage.blobs.accounts["models"] == [key["value"] for key in first]
    storage.put(ACCOUNT, account_body())
    storage.done()
    assert storage.call("POST", f"{ACCOUNT}/listKeys").json()["keys"] == first
    assert not [key["value"] for key in first if key["value"] in str(storage.get(ACCOUNT))]


def test_a_key_is_renewed(storage: Arm) -> None:
    first = storage.call("POST", f"{ACCOUNT}/listKeys").json()["keys"]
    second = storage.call("POST", f"{ACCOUNT}/regenerateKey", {"keyName": "key2"}).json()["keys"]
    assert (first[0] == second[0], first[1] == second[1]) == (True, False)
    assert storage.blobs.accounts["models"] == [key["value"] for key in second]
    refused = storage.call("POST", f"{ACCOUNT}/regenerateKey", {"keyName": "key3"})
    assert storage.refusal(refused)[:2] == (400, "InvalidValuesForRequestParameters")


def test_a_sas_of_a_revoked_delegation_key_opens_nothing(storage: Arm) -> None:
    policy = Policy(storage.server.world, storage.server.tokens)

    def refusal(start: str) -> str:
        query = {"skoid": SUBSCRIPTION.object_id, "skt": start}
        found = policy.refusal(BlobRequest("GET", "/models/data/blob", query, ""))
        return found.code if found else ""

    by_role = "AuthorizationPermissionMismatch"
    assert refusal("2026-01-01T00:00:00Z") == by_role
    assert storage.call("POST", f"{ACCOUNT}/revokeUserDelegationKeys").status_code == 200
    assert refusal("2026-01-01T00:00:00Z") == "AuthenticationFailed"
    assert refusal("2099-01-01T00:00:00Z") == by_role, "a key that begins afterwards counts"


@pytest.mark.parametrize(
    ("name", "body", "code", "message"),
    [
        ("contoso", {}, "StorageAccountAlreadyTaken", "The storage account named contoso is already taken."),
        ("my-models", {}, "InvalidParameter", "Storage account names have 3 to 24 lower-case letters or digits."),
        ("ab", {}, "InvalidParameter", "'name' is 2 long; the least is 3"),
        ("mine", {"location": "moon"}, "LocationNotAvailableForResourceType", "'moon' is not available"),
        (
            "mine",
            {"kind": "Storage"},
            "InvalidParameter",
            "'kind' is invalid (or not simulated): 'Storage'. Allowed: StorageV2, BlockBlobStorage, FileStorage.",
        ),
        (
            "mine",
            {"properties": {"accessTier": "Cold"}},
            "InvalidParameter",
            "'properties.accessTier' is invalid (or not simulated): 'Cold'. Allowed: Hot, Cool.",
        ),
        (
            "mine",
            {"properties": {"minimumTlsVersion": "TLS1_3"}},
            "InvalidParameter",
            "'properties.minimumTlsVersion' is invalid (or not simulated): 'TLS1_3'.",
        ),
        ("mine", {"kind": "BlockBlobStorage"}, "InvalidValuesForRequestParameters", "needs a premium sku"),
        ("mine", {"properties": {"networkAcls": {"defaultAction": "Deny"}}}, "InvalidParameter", "(or not simulated)"),
        (
            "mine",
            {"properties": {"networkAcls": {}}},
            "InvalidParameter",
            "'properties.networkAcls.defaultAction' is missing",
        ),
    ],
)
def test_refused_accounts(storage: Arm, name: str, body: dict[str, Any], code: str, message: str) -> None:
    answer = storage.put(account_path(name), account_body() | body)
    assert answer.status_code in (400, 409)
    assert storage.refusal(answer)[1] == code
    assert message in storage.refusal(answer)[2]


def test_name_of_an_account_in_another_group(storage: Arm) -> None:
    group = GROUP.replace("/rg", "/other")
    storage.put(group, {"location": "eastus"})
    answer = storage.put(account_path("models", group), account_body())
    assert storage.refusal(answer)[:2] == (409, "StorageAccountAlreadyExists")


@pytest.mark.parametrize("change", [{"isHnsEnabled": True}, {"kind": "BlockBlobStorage"}])
def test_what_never_changes(storage: Arm, change: dict[str, Any]) -> None:
    body = account_body() | change if "kind" in change else account_body(**change)
    assert storage.refusal(storage.put(ACCOUNT, body))[:2] == (400, "PropertyChangeNotAllowed")


def test_a_sku_changes_only_without_zones_and_premium(storage: Arm) -> None:
    refused = [storage.put(ACCOUNT, account_body() | {"sku": {"name": sku}}) for sku in ("Standard_ZRS", "Premium_LRS")]
    assert {storage.refusal(each)[1] for each in refused} == {"StorageAccountTypeConversionNotAllowed"}
    assert storage.put(ACCOUNT, account_body() | {"sku": {"name": "Standard_GRS"}}).status_code == 200


@pytest.mark.parametrize("name", ["Upper", "a--b", "-a", "ab"])
def test_refused_container_names(storage: Arm, name: str) -> None:
    answer = storage.put(CONTAINER.replace("/data", f"/{name}"), {"properties": {}})
    assert storage.refusal(answer)[:2] == (400, "InvalidParameter")


def test_container_without_its_account(storage: Arm) -> None:
    answer = storage.put(CONTAINER.replace("/models/", "/nobody/"), {"properties": {}})
    assert answer.status_code == 404


def test_an_account_takes_back_what_it_shows(storage: Arm) -> None:
    shown = storage.get(ACCOUNT)
    assert storage.put(ACCOUNT, shown).status_code == 200
    storage.done()
    assert storage.get(ACCOUNT) == shown


def test_nothing_is_public(storage: Arm) -> None:
    answer = storage.put(CONTAINER, {"properties": {"publicAccess": "Blob"}})
    assert "is invalid (or not simulated): 'Blob'. Allowed: None." in storage.refusal(answer)[2]


def test_deleting_takes_the_blobs_along(storage: Arm) -> None:
    assert storage.call("DELETE", CONTAINER).status_code == 200
    assert not storage.blobs.containers
    storage.put(CONTAINER, {"properties": {}})
    assert storage.call("DELETE", ACCOUNT).status_code == 200
    storage.done()
    assert (storage.blobs.accounts, storage.blobs.containers) == ({}, set())
    assert storage.call("GET", CONTAINER).status_code == 404


def test_deleting_the_group_takes_the_account_along(storage: Arm) -> None:
    storage.call("DELETE", GROUP)
    storage.done()
    assert (storage.blobs.accounts, storage.blobs.containers) == ({}, set())


def test_service_sas_as_azure_writes_it(storage: Arm) -> None:
    token = storage.call("POST", f"{ACCOUNT}/listServiceSas", SAS).json()["serviceSasToken"]
    assert token.startswith("sv=2015-04-05&sr=c&se=2027-01-01T00%3A00%3A00Z&sp=rl&sig=")
    again = storage.call("POST", f"{ACCOUNT}/listServiceSas", SAS | {"signedPermission": "lr"})
    assert again.json()["serviceSasToken"] == token, "the order of the letters is the signature's"
    other = storage.call("POST", f"{ACCOUNT}/listServiceSas", SAS | {"keyToSign": "key2"})
    assert other.json()["serviceSasToken"] != token


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"canonicalizedResource": "/blob/other/data"}, "canonicalizedResource. It must be /blob/models/<container>"),
        ({"signedPermission": "rx"}, "signedPermission. It must be some of the letters racwdl, each once"),
        ({"signedPermission": ""}, "signedPermission. It must be some"),
        ({"signedExpiry": "next month"}, "signedExpiry. It must be a time as 2026-11-21T00:00:00Z"),
        ({"signedExpiry": None}, "signedExpiry. It must be a time"),
        ({"signedResource": "f"}, "signedResource. It must be one of c b"),
        ({"keyToSign": "key3"}, "keyToSign. It must be one of key1 key2"),
        ({"signedIdentifier": "policy"}, "signedIdentifier. It is not simulated"),
    ],
)
def test_refused_service_sas(storage: Arm, change: dict[str, Any], message: str) -> None:
    status, code, said = storage.refusal(storage.call("POST", f"{ACCOUNT}/listServiceSas", SAS | change))
    assert (status, code) == (400, "InvalidValuesForRequestParameters")
    assert message in said
