"""SAS that the deployer's login signs, over their life: issued, about to end, rotated, ended, given up for identities.

One story, in this order.

A platform with one GPU and OLMo, whose account is premium and has folders, and whose driver comes from its chart. A
stack of OLMo alone borrows its data.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

import pytest

from components.storage.sas_providers import instant
from k8s.objects import Object
from tests.e2e.runs import ended, run
from tests.support.arm import API
from tests.support.world import Stack, World, log, names

pytestmark = pytest.mark.simulator
PLATFORM, BORROWER = "data", "borrower"
WEEK = timedelta(days=7)
TRAINING = {"stopAt": 2, "maxFiles": 1, "evaluate": False}
SIGNED = {"sas": "user-delegation"}
CONTAINERS: dict[str, dict[str, Any]] = {
    "olmo-data": {**SIGNED, "permissions": "rl", "profile": "random-4k", "upload": True},
    "olmo-checkpoints": {**SIGNED, "permissions": "racwdlmp"},
}
STORAGE = {
    "protect": False,
    "driver": "chart",
    "sku": "Premium_LRS",
    "hierarchicalNamespace": True,
    "containers": CONTAINERS,
}
BY_IDENTITY = STORAGE | {
    "auth": "identity",
    "containers": {"olmo-data": {"profile": "random-4k"}, "olmo-checkpoints": {"permissions": "racwdlmp"}},
}
ACCOUNT = "Microsoft.Storage/storageAccounts"
DATA_OWNER = "b7e6dc6d-f1e8-4753-8033-0f276bb0955b"  # Storage Blob Data Owner (Azure's built-in roles)


@pytest.fixture(scope="module")
def platform(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    one_gpu = {"vmSku": "Standard_NC24ads_A100_v4", "nodeCount": "1", "modelSize": None}
    olmo = {"workloads": "olmo", "workloadOptions": {"olmo": TRAINING}, "storage": STORAGE}
    made = Stack.create(world, PLATFORM, tmp_path_factory.mktemp(PLATFORM) / "project", one_gpu | olmo)
    made.up()
    yield made
    made.discard()


@pytest.fixture(scope="module")
def borrower(world: World, platform: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The committed stack of OLMo on that platform, told that two files of the data are there: one is."""
    impatient = {"olmo": {**TRAINING, "maxFiles": 2, "prepare": False}}
    config = {"platformStack": PLATFORM, "workloadOptions": impatient}
    made = Stack.create(world, BORROWER, tmp_path_factory.mktemp(BORROWER) / "project", config, like="olmo")
    assert trained(platform, platform) == "Complete"
    made.up()
    yield made
    made.discard()


def account(platform: Stack, below: str = "", provider: str = "Microsoft.Storage") -> Object:
    name = platform.outputs()["storage"]["account"]
    path = f"resourceGroups/ai-on-aks-{PLATFORM}/providers/{ACCOUNT}/{name}{below}"
    return platform.world.arm("GET", f"{path}?api-version={API[provider]}")


def sas(platform: Stack, namespace: str) -> dict[str, dict[str, list[str]]]:
    """The fields of the SAS in each secret of mounts."""
    secrets = {secret["metadata"]["name"]: secret for secret in platform.kube.list("v1", "Secret", namespace)}
    tokens = {
        name: secret["data"]["azurestorageaccountsastoken"] for name, secret in secrets.items() if "-sas-" in name
    }
    return {name: parse_qs(base64.b64decode(token).decode()) for name, token in tokens.items()}


def volumes(platform: Stack, namespace: str) -> set[str]:
    """Claims of the namespace, and their volumes."""
    claims = platform.kube.list("v1", "PersistentVolumeClaim", namespace)
    return {*names(claims), *(claim["spec"]["volumeName"] for claim in claims)}


def trained(stack: Stack, platform: Stack) -> str:
    return ended(stack, platform)["olmo"].phase


def let_pass(stack: Stack, time: timedelta) -> None:
    """As if the stack had been brought up so much earlier: all times of its SAS are moved, in its state.

    In what is secret too: other stacks read them in the output `platform`.
    """
    state = stack.pulumi("stack", "export", "--show-secrets")
    windows = [one for one in json.loads(state)["deployment"]["resources"] if one["type"].endswith(":SasWindow")]
    for moment in {window["outputs"][end] for window in windows for end in ("start", "expiry")}:
        state = state.replace(moment, (instant(moment) - time).strftime("%Y-%m-%dT%H:%M:%SZ"))
    file = stack.folder / "state.json"
    file.write_text(state)
    stack.pulumi("stack", "import", "--file", str(file))


# -- issued ------------------------------------------------------------------------------------------------------------


def test_the_account_is_premium_with_folders_and_its_keys_open_nothing(platform: Stack) -> None:
    found = account(platform)
    assert (found["kind"], found["sku"]["name"]) == ("BlockBlobStorage", "Premium_LRS")
    assert found["properties"]["isHnsEnabled"] is True
    assert found["properties"]["allowSharedKeyAccess"] is False
    roles = account(platform, "/providers/Microsoft.Authorization/roleAssignments", "Microsoft.Authorization")["value"]
    assert [role["properties"]["roleDefinitionId"].rpartition("/")[2] for role in roles] == [DATA_OWNER]


def test_the_driver_is_that_of_the_chart_alone(platform: Stack) -> None:
    assert "csi-blob-node" in names(platform.kube.list("apps/v1", "DaemonSet", "kube-system"))
    assert "blob-csi-driver" in {release["metadata"]["labels"]["name"] for release in releases(platform)}
    path = f"resourceGroups/ai-on-aks-{PLATFORM}/providers/Microsoft.ContainerService/managedClusters"
    cluster = platform.world.arm("GET", f"{path}/ai-on-aks-{PLATFORM}?api-version={API['Microsoft.ContainerService']}")
    assert not cluster["properties"].get("storageProfile", {}).get("blobCSIDriver", {}).get("enabled")


def releases(platform: Stack) -> list[Object]:
    return platform.kube.list("v1", "Secret", "kube-system", labels="owner=helm")


def test_a_training_reads_and_writes_by_what_the_deployer_signed(platform: Stack) -> None:
    assert trained(platform, platform) == "Complete"
    found = sas(platform, "ai")
    assert {name.rpartition("-sas-")[0]: fields["sp"] for name, fields in found.items()} == {
        "olmo-checkpoints": ["racwdlmp"],
        "olmo-data": ["rl"],
    }
    assert all("skoid" in fields for fields in found.values())
    mounted = platform.kube.list("v1", "PersistentVolume")
    assert {"--use-adls=true" in volume["spec"]["mountOptions"] for volume in mounted} == {True}


def test_a_second_up_signs_nothing_anew(platform: Stack) -> None:
    before = sas(platform, "ai")
    assert "unchanged" in platform.up("--expect-no-changes")
    assert sas(platform, "ai") == before


# -- borrowed ----------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_missing_data_ends_a_training_at_once_and_says_what_is_missing(borrower: Stack, platform: Stack) -> None:
    assert trained(borrower, platform) == "Failed"
    (pod,) = names(platform.kube.list("v1", "Pod", BORROWER, labels="batch.kubernetes.io/job-name=olmo"))
    assert re.search(
        r"OLMo cannot start: 1 of 2 data files are missing .* \(absent, ", log(platform.kube, pod, BORROWER)
    )


@pytest.mark.long
def test_the_borrower_copies_what_is_missing_and_trains(borrower: Stack, platform: Stack) -> None:
    borrower.set(workloadOptions={"olmo": {**TRAINING, "maxFiles": 2}})
    borrower.up()
    assert trained(borrower, platform) == "Complete"


# -- about to end, and rotated -----------------------------------------------------------------------------------------


@pytest.mark.long
def test_previews_warn_of_an_end_that_is_near_and_change_nothing(platform: Stack, borrower: Stack) -> None:
    let_pass(platform, WEEK - timedelta(hours=1))
    for stack, name in ((platform, "data"), (borrower, "organization/ai-on-aks/data")):
        text = stack.pulumi("preview", "--expect-no-changes")
        mend = f"pulumi config set -s {name} --path storage.rotation 2 && pulumi up -s {name}"
        for container in CONTAINERS:
            assert re.search(rf"the SAS of container {container} ends at \S+, and mounts and uploads", text)
        assert f"Issue new ones: {mend}\n" in text


@pytest.mark.long
def test_a_rotation_makes_other_volumes_and_jobs_follow(platform: Stack, borrower: Stack) -> None:
    before, theirs = (volumes(platform, namespace) for namespace in ("ai", BORROWER))
    job, their_job = run(platform, "olmo"), run(platform, "olmo", BORROWER)
    platform.pulumi("config", "set", "--path", "storage.rotation", "2")
    platform.up()
    assert not volumes(platform, "ai") & before
    assert run(platform, "olmo") != job
    assert trained(platform, platform) == "Complete"
    for fields in sas(platform, "ai").values():
        assert instant(fields["se"][0]) - datetime.now(UTC) > WEEK - timedelta(hours=1)
    assert (volumes(platform, BORROWER), run(platform, "olmo", BORROWER)) == (theirs, their_job)
    assert "the SAS of container" not in platform.up("--expect-no-changes")


@pytest.mark.long
def test_a_borrower_gets_them_by_its_next_up(platform: Stack, borrower: Stack) -> None:
    before, job = volumes(platform, BORROWER), run(platform, "olmo", BORROWER)
    borrower.up()
    assert not volumes(platform, BORROWER) & before
    assert run(platform, "olmo", BORROWER) != job
    assert trained(borrower, platform) == "Complete"


# -- ended -------------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_time_that_is_over_is_refused_where_a_workload_mounts_it(platform: Stack, borrower: Stack) -> None:
    let_pass(platform, WEEK + timedelta(days=1))
    before = volumes(platform, "ai")
    text = platform.up(check=False)
    assert platform.returncode != 0
    assert "Traceback" not in text
    assert re.search(r"the SAS of container olmo-\w+ ended at \S+, and mounts and uploads that use it fail", text)
    assert re.search(r"pulumi config set -s data --path storage\.rotation \d && pulumi up -s data\n", text)
    assert "olmo would wait for it for ever" in text
    assert volumes(platform, "ai") == before
    platform.set(workloads="")
    assert re.search(r"warning: the SAS of container olmo-data ended", platform.up())
    theirs = borrower.up(check=False)
    name = "organization/ai-on-aks/data"
    assert re.search(rf"config set -s {name} --path storage\.rotation \d && pulumi up -s {name}\n", theirs)
    platform.set(workloads="olmo", storage=STORAGE | {"rotation": "3"})
    platform.up()
    assert trained(platform, platform) == "Complete"


# -- given up for identities -------------------------------------------------------------------------------------------


@pytest.mark.long
def test_identities_take_the_place_of_sas_and_the_data_stay(platform: Stack) -> None:
    """The training finds its data and its last checkpoint, with a token in place of any secret."""
    before, kept = volumes(platform, "ai"), account(platform)["id"]
    give_up_sas(platform)
    assert account(platform)["id"] == kept
    assert not volumes(platform, "ai") & before
    assert trained(platform, platform) == "Complete"
    assert [name for name in names(platform.kube.list("v1", "Secret", "ai")) if "olmo" in name] == []
    assert "unchanged" in platform.up("--expect-no-changes")


def give_up_sas(platform: Stack) -> None:
    by_identity = {"olmo": {**TRAINING, "prepare": False}}
    platform.set(workloads="olmo", storage=BY_IDENTITY, workloadOptions=by_identity)
    platform.up()


@pytest.mark.long
def test_a_borrower_has_an_identity_of_its_own(platform: Stack, borrower: Stack) -> None:
    give_up_sas(platform)
    borrower.set(workloadOptions={"olmo": {**TRAINING, "prepare": False}})
    borrower.up()
    assert trained(borrower, platform) == "Complete"
    assert [name for name in names(platform.kube.list("v1", "Secret", BORROWER)) if "olmo" in name] == []
    path = f"resourceGroups/ai-on-aks-{PLATFORM}/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
    found = platform.world.arm("GET", f"{path}?api-version={API['Microsoft.ManagedIdentity']}")["value"]
    assert {one["name"] for one in found} == {f"ai-on-aks-{PLATFORM}-ai", f"ai-on-aks-{PLATFORM}-{BORROWER}"}
