from __future__ import annotations

import base64
import pickle
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

import pulumi
import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import UserDelegationKey, _shared_access_signature, generate_container_sas
from pulumi.dynamic.dynamic import serialize_provider

from components.stack_outputs import describe_sas
from components.storage import sas_providers
from components.storage.accounts import Storage
from components.storage.sas_providers import CLOCK_SKEW, DelegationProvider, WindowProvider, instant
from config.schema.storage import StorageSettings
from tests.support.case_files import case_table
from tests.support.mocked_azure import KEY, WINDOW
from tests.support.mocks import Recorder, deploy
from tests.support.settings import settings_with

SERVICE_SAS = "azure-native:storage:listStorageAccountServiceSAS"
ASKED = {"rotation": "1", "days": 7.0}  # protobuf has only floats
SIGNED = {
    "endpoint": "https://account.blob.core.windows.net/",
    "account": "account",
    "container": "data",
    "permissions": "rl",
    "start": "2026-01-01T00:00:00Z",
    "expiry": "2099-01-08T00:00:00Z",
}


def declared(**containers: Any) -> Recorder:
    settings = StorageSettings.model_validate({"containers": containers, "rotation": "3"})
    stack = settings_with(storage=settings)

    def declare() -> None:
        made = Storage("storage", stack, pulumi.Output.from_input("group"), settings.all_accounts()[0])
        for name, access in made.containers.items():
            pulumi.export(name, describe_sas(access))
            assert access.sas is not None
            pulumi.export(f"{name}-text", pulumi.Output.unsecret(access.sas.mount))

    return deploy(declare)


def test_arm_signs_a_service_sas_for_the_stored_window() -> None:
    recorder = declared(data={})
    arguments = {
        "accountName": recorder.one(":StorageAccount").inputs["accountName"],
        "resourceGroupName": "group",
        "canonicalizedResource": f"/blob/{recorder.one(':StorageAccount').inputs['accountName']}/data",
        "resource": "c",
        "permissions": "rl",
        "protocols": "https",
        "sharedAccessStartTime": WINDOW["start"],
        "sharedAccessExpiryTime": WINDOW["expiry"],
        "keyToSign": "key1",
    }
    assert [call for call in recorder.azure.calls if call[0] == SERVICE_SAS] == [(SERVICE_SAS, arguments)]
    assert recorder.outputs["data-text"] == "sp=rl&sig=service"  # without a leading '?', which the CSI driver keeps


def test_only_the_sas_for_uploads_may_write() -> None:
    calls = [arguments for token, arguments in declared(data={"upload": True}).azure.calls if token == SERVICE_SAS]
    assert sorted(call["permissions"] for call in calls) == ["rcwl", "rl"]


@pytest.mark.parametrize("permissions", ["rl", "racwdlmp"])
@pytest.mark.parametrize("kind", ["service", "user-delegation"])
def test_sas_are_secret(kind: str, permissions: str) -> None:
    recorder = declared(data={"sas": kind, "upload": True, "permissions": permissions})
    assert recorder.outputs["data"] == "[secret]"
    assert KEY not in str(recorder.registered), "the account's key is not in the state"


def test_signs_permissions_that_arm_does_not_know_with_the_accounts_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result equals the SDK's for the same service version."""
    recorder = declared(data={"permissions": "racwdlmp"})
    assert SERVICE_SAS not in dict(recorder.azure.calls)
    account = recorder.one(":StorageAccount").inputs["accountName"]
    monkeypatch.setattr(_shared_access_signature, "X_MS_VERSION", "2020-12-06")
    start, expiry = WINDOW["start"], WINDOW["expiry"]
    expected = generate_container_sas(
        account, "data", KEY, permission="racwdlmp", start=start, expiry=expiry, protocol="https"
    )
    assert parse_qs(recorder.shown["data-text"]) == parse_qs(expected)


def test_a_user_delegation_sas_is_a_dynamic_resource_with_a_secret_output() -> None:
    recorder = declared(data={"sas": "user-delegation", "permissions": "racwdl"})
    sas = recorder.one(":DelegationSas")
    assert {key: sas.inputs[key] for key in ("container", "permissions", "start", "expiry")} == {
        "container": "data",
        "permissions": "racwdl",
        **WINDOW,
    }
    assert sas.inputs["endpoint"] == "https://account.blob.core.windows.net/"
    assert list(sas.request.additionalSecretOutputs) == ["sas"]
    assert SERVICE_SAS not in dict(recorder.azure.calls)


def test_a_window_begins_before_now_and_lasts_its_days() -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    made = WindowProvider().create(ASKED).outs
    assert made is not None
    assert instant(made["expiry"]) - instant(made["start"]) == timedelta(days=7)
    assert before <= instant(made["start"]) + CLOCK_SKEW <= datetime.now(UTC)
    assert made["rotation"] == "1"


@pytest.mark.parametrize(
    ("news", "replaces"),
    [(ASKED, []), ({**ASKED, "rotation": "2"}, ["rotation"]), ({**ASKED, "days": 8.0}, ["days"])],
)
def test_a_window_stays_until_its_inputs_change(news: dict[str, Any], replaces: list[str]) -> None:
    olds = WindowProvider().create(ASKED).outs
    result = WindowProvider().diff("", olds or {}, news)
    assert (result.changes, result.replaces) == (bool(replaces), replaces)


@pytest.mark.parametrize("name", ["account", "container", "permissions", "start", "expiry"])
def test_signs_again_if_a_signed_value_changes(name: str) -> None:
    result = DelegationProvider().diff("", {**SIGNED, "sas": "old"}, {**SIGNED, name: "other"})
    assert (result.changes, result.replaces) == (True, [name])


def test_another_endpoint_does_not_change_the_sas() -> None:
    result = DelegationProvider().diff("", {**SIGNED, "sas": "old"}, {**SIGNED, "endpoint": "https://127.0.0.1:1/a"})
    assert result.changes is False


class Account:
    def __init__(self, refusals: int = 0, status: int = 403) -> None:
        self.refusals, self.status, self.asked = refusals, status, 0
        self.credential: Any = None

    def __call__(self, _endpoint: str, *, credential: Any) -> Account:
        self.credential = credential
        return self

    def __enter__(self) -> Account:
        return self

    def __exit__(self, *_error: object) -> None:
        return None

    def get_user_delegation_key(self, start: datetime, expiry: datetime) -> UserDelegationKey:
        self.asked += 1
        if self.asked <= self.refusals:
            error = HttpResponseError(message="AuthorizationPermissionMismatch")
            error.status_code = self.status
            raise error
        key: UserDelegationKey = UserDelegationKey()  # type: ignore[no-untyped-call]
        key.signed_oid = key.signed_tid = "login"
        key.signed_start, key.signed_expiry = start.isoformat(), expiry.isoformat()
        key.signed_service, key.signed_version = "b", "2024-11-04"
        key.value = base64.b64encode(b"key").decode()
        return key


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    pauses: list[float] = []
    monkeypatch.setattr("components.storage.sas_providers.time.sleep", pauses.append)
    return pauses


def signed_by(account: Account, monkeypatch: pytest.MonkeyPatch, **changed: str) -> dict[str, list[str]]:
    monkeypatch.setattr("azure.storage.blob.BlobServiceClient", account)
    outs = DelegationProvider().create({**SIGNED, **changed}).outs or {}
    return parse_qs(outs["sas"])


def test_a_sas_contains_the_requested_values(monkeypatch: pytest.MonkeyPatch) -> None:
    sas = signed_by(Account(), monkeypatch)
    assert (sas["sp"], sas["sr"], sas["spr"]) == (["rl"], ["c"], ["https"])
    assert (sas["st"], sas["se"]) == ([SIGNED["start"]], [SIGNED["expiry"]])
    assert sas["skoid"] == ["login"]


def test_retries_until_a_new_role_applies(monkeypatch: pytest.MonkeyPatch, slept: list[float]) -> None:
    account = Account(refusals=2)
    assert signed_by(account, monkeypatch)["sig"]
    assert slept == [sas_providers.PAUSE_SECONDS] * 2


def test_stops_retrying_after_ten_minutes(monkeypatch: pytest.MonkeyPatch, slept: list[float]) -> None:
    with pytest.raises(PermissionError, match="Storage Blob Data Contributor"):
        signed_by(Account(refusals=1000), monkeypatch)
    assert sum(slept) == 600


def test_does_not_retry_other_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(refusals=1, status=400)
    with pytest.raises(HttpResponseError):
        signed_by(account, monkeypatch)
    assert account.asked == 1


@case_table(__file__, "logins")
def test_signs_with_the_login_of_the_deployer(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: list[str]
) -> None:
    for name in ("ARM_CLIENT_ID", "ARM_USE_MSI", "ARM_USE_OIDC"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    account = Account()
    signed_by(account, monkeypatch)
    chain = [account.credential] if len(expected) == 1 else account.credential.credentials
    assert [type(each).__name__ for each in chain] == expected


def test_rejects_a_window_that_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"ended at .* Change the rotation of storage account account"):
        signed_by(Account(), monkeypatch, expiry="2026-01-08T00:00:00Z")


@pytest.mark.parametrize("provider", [WindowProvider(), DelegationProvider()])
def test_pulumi_stores_a_reference_to_the_provider(provider: pulumi.dynamic.ResourceProvider) -> None:
    """With the code, every change of these files would change every stack."""
    text = base64.b64decode(serialize_provider(provider))
    assert b"components.storage.sas_providers" in text
    assert len(text) < 200
    assert type(pickle.loads(text)) is type(provider)  # noqa: S301
