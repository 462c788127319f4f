from __future__ import annotations

import re
from typing import Any

import pulumi
import pytest
from google.protobuf import json_format
from pulumi_kubernetes.core import v1 as core

from components.azure.roles import BLOB_DATA_CONTRIBUTOR, BLOB_DATA_OWNER
from components.context import BlobVolume
from components.storage.accounts import Storage
from components.storage.container_access import ContainerAccess, Sas
from components.storage.volumes import ContainerVolume
from config.data.blobfuse import files_at_once, mount_options, profiles, remembers
from config.schema.names import Names
from config.schema.storage import MAX_ACCOUNT_NAME, Account, AccountSettings, ContainerSettings, StorageSettings
from tests.support.case_files import case_table
from tests.support.mocked_azure import DEPLOYER, SECRET, SUBSCRIPTION, WINDOW
from tests.support.mocks import Recorder, Registered, deploy
from tests.support.settings import settings_with

DATA = {"olmo-data": {"profile": "random-4k", "upload": True}, "olmo-checkpoints": {"permissions": "racwdlmp"}}


def declared(**storage: Any) -> tuple[Recorder, Storage]:
    made: list[Storage] = []
    settings = StorageSettings.model_validate({"containers": DATA, **storage})
    stack = settings_with(storage=settings)
    group = pulumi.Output.from_input("group")
    recorder = deploy(lambda: made.append(Storage("storage", stack, group, settings.all_accounts()[0])))
    return recorder, made[0]


def account(key: str = "", **settings: Any) -> Account:
    return Account(key, AccountSettings(**settings))


def generation(account: dict[str, Any] | None = None, **container: Any) -> str:
    settings = StorageSettings.model_validate({**(account or {}), "containers": {"data": container}})
    return settings.by_container()["data"].generation("data")


def test_the_derived_name_of_an_account_is_valid() -> None:
    name = account().full_name(Names("ai-on-aks", "a-long-stack-name"), SUBSCRIPTION)
    assert re.fullmatch(f"[a-z0-9]{{{MAX_ACCOUNT_NAME}}}", name)
    assert account(account_name="mine").full_name(Names("p", "s"), SUBSCRIPTION) == "mine"


@pytest.mark.parametrize(
    ("sku", "kind"), [("Standard_ZRS", "StorageV2"), ("Premium_LRS", "BlockBlobStorage")]
)  # fmt: skip
def test_premium_accounts_have_the_kind_for_block_blobs(sku: str, kind: str) -> None:
    account = declared(sku=sku)[0].one(":StorageAccount").inputs
    assert (account["sku"], account["kind"]) == ({"name": sku}, kind)


def test_protects_data_unless_the_setting_is_off() -> None:
    for protect in (True, False):
        recorder, _ = declared(protect=protect)
        kinds = (":StorageAccount", ":BlobContainer")
        assert {r.request.protect for r in recorder.registered if r.type.endswith(kinds)} == {protect}


def test_creates_a_renamed_account_before_it_deletes_the_old_one() -> None:
    recorder, _ = declared(containers={"data": {}})
    for kind in (":StorageAccount", ":BlobContainer"):
        request = recorder.one(kind).request
        assert request.deleteBeforeReplaceDefined
        assert not request.deleteBeforeReplace


def test_a_user_delegation_sas_needs_a_role_and_no_shared_keys() -> None:
    recorder, _ = declared(containers={"data": {"sas": "user-delegation"}})
    assert recorder.one(":StorageAccount").inputs["allowSharedKeyAccess"] is False
    role = recorder.one(":RoleAssignment")
    assert role.inputs["principalId"] == DEPLOYER
    assert role.inputs["roleDefinitionId"].endswith(BLOB_DATA_CONTRIBUTOR)
    assert "/StorageAccount/" in role.inputs["scope"]
    assert any("RoleAssignment" in name for name in recorder.one(":DelegationSas").dependencies)


def test_signing_for_permissions_of_files_needs_the_owners_role() -> None:
    """A SAS cannot have more rights than its signer."""
    recorder, _ = declared(containers={"data": {"sas": "user-delegation", "permissions": "racwdlmp"}})
    assert recorder.one(":RoleAssignment").inputs["roleDefinitionId"].endswith(BLOB_DATA_OWNER)


@case_table(__file__, "changed")
def test_names_of_volumes_change_with_the_options_of_the_mount(changed: dict[str, Any]) -> None:
    assert generation(**changed) != generation()


def test_names_of_volumes_change_with_rotation_and_login_only() -> None:
    assert generation({"rotation": "2"}) != generation({"rotation": "1"}) == generation()
    assert generation({"auth": "identity"}) != generation()
    assert generation({"rotation": ""}) == generation(), "an empty string means unset"
    assert generation({"rotation": 2}) == generation({"rotation": "2"}), "YAML reads such text as a number"
    assert generation({"protect": False, "driver": "chart"}, upload=True) == generation()


def test_only_checkpoints_are_mounted_without_caches_of_names() -> None:
    """Flags of `blobfuse2 mount` (azure-storage-fuse 74098e3, component/libfuse/libfuse.go and cmd/mount.go)."""
    assert [profile for profile in profiles() if not remembers(profile)] == ["checkpoints"]
    options = mount_options("checkpoints", "v", hierarchical_namespace=True)
    flags = {"--attr-timeout=0", "--entry-timeout=0", "--negative-timeout=0", "--use-attr-cache=false"}
    assert flags <= set(options)
    others = set(mount_options("sequential", "v", hierarchical_namespace=True))
    assert set(options) - flags == others, "the other options equal those of sequential"


@pytest.mark.parametrize("profile", profiles())
def test_blobfuse2_accepts_each_profile(profile: str) -> None:
    options = dict(
        option.removeprefix("--").split("=")
        for option in mount_options(profile, "v", hierarchical_namespace=True)
        if option.startswith("--")
    )
    ahead = int(options["block-cache-prefetch"])
    assert ahead == 0 or ahead >= 11  # block_cache.go: none, or MIN_PREFETCH * 2 + 1
    assert ahead * float(options["block-cache-block-size"]) <= float(options["block-cache-pool-size"])
    assert options["use-adls"] == "true"


@pytest.mark.parametrize("profile", [name for name in profiles() if name != "random-4k"])
def test_eight_files_can_be_written_at_once(profile: str) -> None:
    """A file keeps its blocks until closed. A write without a free block fails with EIO after 5 seconds."""
    assert files_at_once(profile) >= 8


SAS = "sp=rl&sig=abc"


def access(
    *, sas: str = SAS, generation: str = "a1b2", key: str = "", hns: bool = False, **settings: Any
) -> ContainerAccess:
    chosen = ContainerSettings.model_validate(settings)
    return ContainerAccess(
        account="account",
        account_key=key,
        container="olmo-data",
        hierarchical_namespace=hns,
        settings=chosen,
        generation=generation,
        url="https://account.blob.core.windows.net/olmo-data",
        sas=Sas(
            rotation="1",
            **WINDOW,
            mount=pulumi.Output.secret(sas),
            upload=pulumi.Output.secret("sp=rcwl&sig=def") if chosen.upload else None,
        ),
        scope="/containers/olmo-data",
    )


def declared_volume(namespace: str = "ai", **given: Any) -> tuple[Recorder, BlobVolume]:
    volumes: list[BlobVolume] = []

    def declare() -> None:
        space = core.Namespace("space", metadata={"name": namespace})
        made = ContainerVolume("olmo-data", access(**given), namespace=namespace, space=space, hooks=None)
        volumes.append(made.volume)
        pulumi.export("annotations", dict(volumes[0].annotations))

    return deploy(declare), volumes[0]


def contents(secret: Registered) -> dict[str, str]:
    """The mocks hide a Secret's data."""
    assert secret.inputs["stringData"] == SECRET
    held: dict[str, str] = json_format.MessageToDict(secret.request.object)["stringData"]["value"]
    return held


def test_the_secret_has_the_keys_of_the_driver() -> None:
    secret = declared_volume()[0].one(":Secret")
    assert contents(secret) == {"azurestorageaccountname": "account", "azurestorageaccountsastoken": SAS}
    assert secret.inputs["metadata"] == {"name": "olmo-data-sas-a1b2", "namespace": "ai"}


def test_a_claim_is_deleted_with_its_namespace() -> None:
    recorder = declared_volume()[0]
    assert recorder.one(":PersistentVolumeClaim").request.deletedWith.endswith("Namespace::space")
    assert recorder.one(":PersistentVolume").request.deletedWith == ""


def test_a_new_sas_creates_new_objects() -> None:
    kinds = (":Secret", ":PersistentVolume", ":PersistentVolumeClaim")
    first, second = declared_volume(generation="0000")[0], declared_volume(generation="1111")[0]
    for kind in kinds:
        assert first.one(kind).inputs["metadata"]["name"] != second.one(kind).inputs["metadata"]["name"]


def test_the_annotation_of_pods_changes_with_the_sas_and_does_not_expose_it() -> None:
    first, same, other = (declared_volume(sas=sas)[0].outputs["annotations"] for sas in ("sig=1", "sig=1", "sig=2"))
    assert first == same != other
    assert list(first) == ["sas.ai-on-aks/olmo-data"]
    assert "sig" not in str(first)
    assert SECRET not in str(first)


def test_uploads_have_a_separate_secret() -> None:
    recorder, volume = declared_volume(upload=True)
    secret = recorder.one(":Secret", "upload-olmo-data")
    url = "https://account.blob.core.windows.net/olmo-data"
    assert contents(secret) == {"url": url, "sas": "sp=rcwl&sig=def"}
    assert volume.upload_secret is not None
    assert declared_volume()[1].upload_secret is None
