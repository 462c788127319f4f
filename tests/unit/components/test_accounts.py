from __future__ import annotations

import json
from typing import Any

import pulumi
import pytest

from components.azure.roles import BLOB_DATA_CONTRIBUTOR, BLOB_DATA_READER
from components.preflight.existing import check_existing
from config.schema.names import Names
from config.schema.storage import MAX_ACCOUNT_NAME, Account, AccountSettings, StorageSettings
from tests.support import golden
from tests.support.mocked_azure import ISSUER, PRINCIPAL, SUBSCRIPTION, Azure
from tests.support.mocks import Recorder, deploy, program
from tests.support.settings import settings_with
from tests.support.sizes import H100

DATA: dict[str, Any] = {"containers": {"data": {}}}
MORE: dict[str, Any] = {"accounts": {"output": {"sku": "Premium_LRS", "containers": {"results": {}}}}}


@pytest.fixture(scope="module")
def mixed() -> Recorder:
    return golden.run("two-accounts")


def full_name(key: str, stack: str = "dev", subscription: str = SUBSCRIPTION) -> str:
    return Account(key, AccountSettings()).full_name(Names("ai-on-aks", stack), subscription)


def test_the_name_of_an_account_contains_its_key() -> None:
    assert full_name("input")[:-6] == "aionaksdevinput"
    assert full_name("input", "a-stack-of-a-long-name")[:-6] == "aionaksastackinput"
    assert len(full_name("input", "a-stack-of-a-long-name")) == MAX_ACCOUNT_NAME
    assert len({full_name("input"), full_name("input", subscription="another"), full_name("output")}) == 3
    assert full_name("input") != full_name("", "devinput"), "no other stack has the same name"


def test_a_second_account_does_not_change_the_first() -> None:
    before, after = (program({"vmSku": H100, "storage": DATA | more}) for more in ({}, MORE))
    had, has = golden.resources(before), golden.resources(after)
    assert {name: has[name] for name in had} == had
    assert [name for name in has if name not in had and "StorageAccount" in name] == [
        "azure-native:storage:StorageAccount storage-account-output"
    ]
    names = {name: after.one(":StorageAccount", name).inputs["accountName"] for name in after.names(":StorageAccount")}
    assert after.outputs["storage"] == {
        "account": names["storage-account"],
        "containers": ["data"],
        "accounts": {"output": {"account": names["storage-account-output"], "containers": ["results"]}},
    }


def test_a_container_of_another_account_needs_another_volume() -> None:
    """Nodes keep a mount under its volume's name, even if the container moves."""
    accounts = [Account(key, AccountSettings.model_validate(DATA)) for key in ("", "input", "output")]
    assert len({account.generation("data") for account in accounts}) == 3


def test_the_signer_gets_a_role_on_each_account() -> None:
    signed: dict[str, Any] = {"containers": {"data": {"sas": "user-delegation"}}}
    other = {"accounts": {"output": {"containers": {"results": {"sas": "user-delegation"}}}}}
    recorder = program({"vmSku": H100, "storage": signed | other})
    assert [name for name in recorder.names(":RoleAssignment") if "blob" in name] == [
        "deployer-blob-data",
        "deployer-blob-data-output",
    ]


ENDED = {"start": "2026-01-01T00:00:00Z", "expiry": "2026-01-08T00:00:00Z"}
JOB: dict[str, Any] = {
    "platformStack": "dev",
    "workloads": "olmo",
    "workloadOptions": golden.STACKS["two-accounts"]["workloadOptions"],
}


def test_a_consumer_stack_gets_the_command_that_rotates_the_platforms_sas(
    mixed: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = json.loads(json.dumps(mixed.shown["platform"]))
    platform["containers"]["output"] |= ENDED
    monkeypatch.setitem(mixed.shown, "platform", platform)
    monkeypatch.setattr(pulumi.log, "warn", lambda *_: None)
    with pytest.raises(pulumi.RunError, match=r"-s \S+/dev --path storage\.accounts\.output\.rotation 2 &&"):
        program(JOB, Azure(stacks={"dev": mixed}), "jobs")


def test_a_consumer_stack_that_only_mounts_by_sas_needs_no_rights(mixed: Recorder) -> None:
    written = {"olmo": {**JOB["workloadOptions"]["olmo"], "dataContainer": "output"}}
    consumer = program({**JOB, "workloadOptions": written}, azure := Azure(stacks={"dev": mixed}), "jobs")
    assert consumer.names(":UserAssignedIdentity") == []
    assert not [token for token, _ in azure.calls if "getClientToken" in token], "no lookup needs it"


def existing(azure: Azure, **storage: Any) -> list[str]:
    chosen = settings_with(storage=StorageSettings.model_validate(storage))
    with pytest.raises(pulumi.RunError) as refusal:
        deploy(lambda: check_existing(chosen), azure)
    return str(refusal.value).splitlines()


def test_rejects_changes_of_an_account_with_the_commands_that_keep_it() -> None:
    flat = Azure(cluster=True, account={"name": "models", "isHnsEnabled": False})
    lines = existing(flat, **MORE, containers={"data": {}}, hierarchicalNamespace=False)
    keep = "    pulumi config set -s test --path storage.accounts.output"
    assert (
        lines[0] == "storage.accounts.output.hierarchicalNamespace is true, but the storage account models has false."
    )
    assert lines[2::4] == [f"{keep}.hierarchicalNamespace false", f"{keep}.sku Standard_LRS"]


def test_lists_the_data_of_all_accounts_if_the_stack_moves() -> None:
    named = {"accounts": {"output": {**DATA, "accountName": "results"}}}
    held = {"account": "models", "containers": ["data"], "accounts": {"output": {"account": "results"}}}
    before = {"resourceGroup": "elsewhere", "clusterName": "ai-on-aks-test", "storage": held}
    lines = existing(Azure(cluster=True, outputs=before), **named)
    assert [line for line in lines if "all data in it" in line] == [
        "    storage account models: all data in it",
        "    storage account results: all data in it",
    ]
    assert "pulumi config rm -s test-2 --path storage.accounts.output.accountName" in "\n".join(lines)


OLMO = {
    "olmo-data": {"profile": "random-4k"},
    "olmo-checkpoints": {"permissions": "racwdlmp", "profile": "checkpoints"},
}
STORAGE: dict[str, Any] = {"auth": "identity", "containers": OLMO}
PLATFORM: dict[str, Any] = {"vmSku": H100, "storage": STORAGE}
TRAINING: dict[str, Any] = {"workloads": "olmo", "workloadOptions": {"olmo": {"prepare": False, "stopAt": 20}}}


def roles(recorder: Recorder) -> dict[str, str]:
    made = [each.inputs for each in recorder.registered if each.type.endswith(":RoleAssignment")]
    theirs = [each for each in made if each["principalId"] == PRINCIPAL]
    assert {each["principalType"] for each in theirs} == {"ServicePrincipal"}
    return {each["scope"].rpartition("/BlobContainer/")[2]: each["roleDefinitionId"][-36:] for each in theirs}


def test_a_consumer_stack_gets_an_identity_with_roles_on_its_containers() -> None:
    more = STORAGE | {"containers": OLMO | {"secrets": {}}}
    platform = program(PLATFORM | {"storage": more}, stack="dev")
    consumer = program({"platformStack": "dev", **TRAINING}, Azure(stacks={"dev": platform}), "mine")
    assert consumer.one(":UserAssignedIdentity").inputs["resourceName"] == "ai-on-aks-dev-mine"
    credential = consumer.one(":FederatedIdentityCredential").inputs
    assert (credential["issuer"], credential["subject"]) == (ISSUER, "system:serviceaccount:mine:blobs")
    assert roles(consumer) == {"olmo-data": BLOB_DATA_READER, "olmo-checkpoints": BLOB_DATA_CONTRIBUTOR}
    assert consumer.names(":Secret") == []
