"""SAS that the deployer's login signs.

The platform has a premium account with folders, and the chart's blob driver. A consumer uses the same data.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

import pytest

from components.storage.sas_providers import instant
from k8s.objects import Object
from tests.e2e.runs import run, wait_for_end
from tests.support.arm import API
from tests.support.world import Stack, log, names

pytestmark = pytest.mark.simulator
PLATFORM, CONSUMER = "data", "consumer"
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
def platform(new_stack: Callable[..., Stack]) -> Stack:
    olmo = {"workloads": "olmo", "workloadOptions": {"olmo": TRAINING}, "storage": STORAGE}
    made = new_stack(PLATFORM, vmSku="Standard_NC24ads_A100_v4", nodeCount="1", **olmo)
    made.up()
    return made


@pytest.fixture(scope="module")
def consumer(platform: Stack, new_stack: Callable[..., Stack]) -> Stack:
    """The stack needs two data files, of which one exists."""
    options = {"olmo": {**TRAINING, "maxFiles": 2, "prepare": False}}
    made = new_stack(CONSUMER, "olmo", platformStack=PLATFORM, workloadOptions=options)
    assert train_phase(platform, platform) == "Complete"
    made.up()
    return made


def account(platform: Stack, below: str = "", provider: str = "Microsoft.Storage") -> Object:
    name = platform.outputs()["storage"]["account"]
    path = f"resourceGroups/ai-on-aks-{PLATFORM}/providers/{ACCOUNT}/{name}{below}"
    return platform.world.arm("GET", f"{path}?api-version={API[provider]}")


def sas(platform: Stack, namespace: str) -> dict[str, dict[str, list[str]]]:
    secrets = {secret["metadata"]["name"]: secret for secret in platform.kube.list("v1", "Secret", namespace)}
    tokens = {
        name: secret["data"]["azurestorageaccountsastoken"] for name, secret in secrets.items() if "-sas-" in name
    }
    return {name: parse_qs(base64.b64decode(token).decode()) for name, token in tokens.items()}


def volumes(platform: Stack, namespace: str) -> set[str]:
    claims = platform.kube.list("v1", "PersistentVolumeClaim", namespace)
    return {*names(claims), *(claim["spec"]["volumeName"] for claim in claims)}


def train_phase(stack: Stack, platform: Stack) -> str:
    return wait_for_end(stack, platform)["olmo"].phase


def age_sas(stack: Stack, time: timedelta) -> None:
    """Moves all times of SAS in the state to the past, also in secrets, which other stacks read."""
    state = stack.pulumi("stack", "export", "--show-secrets")
    windows = [one for one in json.loads(state)["deployment"]["resources"] if one["type"].endswith(":SasWindow")]
    for moment in {window["outputs"][end] for window in windows for end in ("start", "expiry")}:
        state = state.replace(moment, (instant(moment) - time).strftime("%Y-%m-%dT%H:%M:%SZ"))
    file = stack.folder / "state.json"
    file.write_text(state)
    stack.pulumi("stack", "import", "--file", str(file))


# -- issued ------------------------------------------------------------------------------------------------------------


def test_the_account_is_premium_with_folders_and_without_key_access(platform: Stack) -> None:
    found = account(platform)
    assert (found["kind"], found["sku"]["name"]) == ("BlockBlobStorage", "Premium_LRS")
    assert found["properties"]["isHnsEnabled"] is True
    assert found["properties"]["allowSharedKeyAccess"] is False
    roles = account(platform, "/providers/Microsoft.Authorization/roleAssignments", "Microsoft.Authorization")["value"]
    assert [role["properties"]["roleDefinitionId"].rpartition("/")[2] for role in roles] == [DATA_OWNER]


def test_only_the_charts_driver_is_installed(platform: Stack) -> None:
    assert "csi-blob-node" in names(platform.kube.list("apps/v1", "DaemonSet", "kube-system"))
    releases = platform.kube.list("v1", "Secret", "kube-system", labels="owner=helm")
    assert "blob-csi-driver" in {release["metadata"]["labels"]["name"] for release in releases}
    path = f"resourceGroups/ai-on-aks-{PLATFORM}/providers/Microsoft.ContainerService/managedClusters"
    cluster = platform.world.arm("GET", f"{path}/ai-on-aks-{PLATFORM}?api-version={API['Microsoft.ContainerService']}")
    assert not cluster["properties"].get("storageProfile", {}).get("blobCSIDriver", {}).get("enabled")


def test_a_training_reads_and_writes_with_the_deployers_sas(platform: Stack) -> None:
    assert train_phase(platform, platform) == "Complete"
    found = sas(platform, "ai")
    assert {name.rpartition("-sas-")[0]: fields["sp"] for name, fields in found.items()} == {
        "olmo-checkpoints": ["racwdlmp"],
        "olmo-data": ["rl"],
    }
    assert all("skoid" in fields for fields in found.values())
    mounted = platform.kube.list("v1", "PersistentVolume")
    assert {"--use-adls=true" in volume["spec"]["mountOptions"] for volume in mounted} == {True}


def test_a_second_up_keeps_all_sas(platform: Stack) -> None:
    before = sas(platform, "ai")
    assert "unchanged" in platform.up("--expect-no-changes")
    assert sas(platform, "ai") == before


# -- shared ------------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_training_fails_at_once_and_reports_missing_data(consumer: Stack, platform: Stack) -> None:
    assert train_phase(consumer, platform) == "Failed"
    (pod,) = names(platform.kube.list("v1", "Pod", CONSUMER, labels="batch.kubernetes.io/job-name=olmo"))
    assert re.search(
        r"OLMo cannot start: 1 of 2 data files in .* are missing .* \(absent, ", log(platform.kube, pod, CONSUMER)
    )


@pytest.mark.long
def test_the_consumer_copies_missing_data_and_trains(consumer: Stack, platform: Stack) -> None:
    consumer.set(workloadOptions={"olmo": {**TRAINING, "maxFiles": 2}})
    consumer.up()
    assert train_phase(consumer, platform) == "Complete"


# -- near expiry, and rotated ------------------------------------------------------------------------------------------


@pytest.mark.long
def test_previews_warn_of_a_near_expiry_and_change_nothing(platform: Stack, consumer: Stack) -> None:
    age_sas(platform, WEEK - timedelta(hours=1))
    for stack, name in ((platform, "data"), (consumer, "organization/ai-on-aks/data")):
        text = stack.pulumi("preview", "--expect-no-changes")
        fix = f"pulumi config set -s {name} --path storage.rotation 2 && pulumi up -s {name}"
        for container in CONTAINERS:
            assert re.search(rf"the SAS of container {container} ends at \S+, and mounts and uploads", text)
        assert f"Issue new SAS: {fix}\n" in text


@pytest.mark.long
def test_a_rotation_replaces_volumes_and_jobs(platform: Stack, consumer: Stack) -> None:
    before, theirs = (volumes(platform, namespace) for namespace in ("ai", CONSUMER))
    job, their_job = run(platform, "olmo"), run(platform, "olmo", CONSUMER)
    platform.pulumi("config", "set", "--path", "storage.rotation", "2")
    platform.up()
    assert not volumes(platform, "ai") & before
    assert run(platform, "olmo") != job
    assert train_phase(platform, platform) == "Complete"
    for fields in sas(platform, "ai").values():
        assert instant(fields["se"][0]) - datetime.now(UTC) > WEEK - timedelta(hours=1)
    assert (volumes(platform, CONSUMER), run(platform, "olmo", CONSUMER)) == (theirs, their_job)
    assert "the SAS of container" not in platform.up("--expect-no-changes")


@pytest.mark.long
def test_a_consumer_gets_new_sas_with_its_next_up(platform: Stack, consumer: Stack) -> None:
    before, job = volumes(platform, CONSUMER), run(platform, "olmo", CONSUMER)
    consumer.up()
    assert not volumes(platform, CONSUMER) & before
    assert run(platform, "olmo", CONSUMER) != job
    assert train_phase(consumer, platform) == "Complete"


# -- expired -----------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_an_expired_sas_that_a_workload_mounts_is_an_error(platform: Stack, consumer: Stack) -> None:
    age_sas(platform, WEEK + timedelta(days=1))
    before = volumes(platform, "ai")
    text = platform.up(check=False)
    assert platform.returncode != 0
    assert "Traceback" not in text
    assert re.search(r"the SAS of container olmo-\w+ ended at \S+, and mounts and uploads that use it fail", text)
    assert re.search(r"pulumi config set -s data --path storage\.rotation \d && pulumi up -s data\n", text)
    assert "olmo would wait for the container forever" in text
    assert volumes(platform, "ai") == before
    platform.set(workloads="")
    assert re.search(r"warning: the SAS of container olmo-data ended", platform.up())
    theirs = consumer.up(check=False)
    name = "organization/ai-on-aks/data"
    assert re.search(rf"config set -s {name} --path storage\.rotation \d && pulumi up -s {name}\n", theirs)
    platform.set(workloads="olmo", storage=STORAGE | {"rotation": "3"})
    platform.up()
    assert train_phase(platform, platform) == "Complete"


# -- replaced by identities --------------------------------------------------------------------------------------------


@pytest.mark.long
def test_identities_replace_sas_and_the_data_stay(platform: Stack) -> None:
    before, kept = volumes(platform, "ai"), account(platform)["id"]
    use_identities(platform)
    assert account(platform)["id"] == kept
    assert not volumes(platform, "ai") & before
    assert train_phase(platform, platform) == "Complete"
    assert [name for name in names(platform.kube.list("v1", "Secret", "ai")) if "olmo" in name] == []
    assert "unchanged" in platform.up("--expect-no-changes")


def use_identities(platform: Stack) -> None:
    by_identity = {"olmo": {**TRAINING, "prepare": False}}
    platform.set(workloads="olmo", storage=BY_IDENTITY, workloadOptions=by_identity)
    platform.up()


@pytest.mark.long
def test_a_consumer_has_its_own_identity(platform: Stack, consumer: Stack) -> None:
    use_identities(platform)
    consumer.set(workloadOptions={"olmo": {**TRAINING, "prepare": False}})
    consumer.up()
    assert train_phase(consumer, platform) == "Complete"
    assert [name for name in names(platform.kube.list("v1", "Secret", CONSUMER)) if "olmo" in name] == []
    path = f"resourceGroups/ai-on-aks-{PLATFORM}/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
    found = platform.world.arm("GET", f"{path}?api-version={API['Microsoft.ManagedIdentity']}")["value"]
    assert {one["name"] for one in found} == {f"ai-on-aks-{PLATFORM}-ai", f"ai-on-aks-{PLATFORM}-{CONSUMER}"}
