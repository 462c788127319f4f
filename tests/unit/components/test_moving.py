from __future__ import annotations

import re
from typing import Any

import pulumi
import pytest

from components.preflight.existing import check_existing
from config.schema.cluster import ClusterSettings
from config.schema.models import Settings
from config.schema.registry import RegistrySettings
from config.schema.storage import StorageSettings
from tests.support.mocked_azure import Azure
from tests.support.mocks import deploy
from tests.support.settings import settings_with

DATA: dict[str, Any] = {"containers": {"data": {}}}
IN_EASTUS = {"resourceGroup": "ai-on-aks-test", "clusterName": "ai-on-aks-test"}
HOLDS = {**IN_EASTUS, "registry": "images.azurecr.io", "storage": {"account": "models", "containers": ["data"]}}


def settings(location: str = "eastus", group: str | None = None, stack: str = "test", **others: Any) -> Settings:
    return settings_with(
        stack,
        location=location,
        cluster=ClusterSettings(resource_group=group),
        **others,
    )


def refused(chosen: Settings, azure: Azure) -> list[str]:
    with pytest.raises(pulumi.RunError) as refusal:
        deploy(lambda: check_existing(chosen), azure)
    return str(refusal.value).splitlines()


def commands(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines if line.startswith("    pulumi ")]


@pytest.mark.parametrize(
    ("wanted", "azure"),
    [
        (settings(), Azure(cluster=True, outputs=HOLDS)),
        (settings(), Azure(cluster=True, location="East US", outputs=HOLDS)),
        (settings("westeurope", "elsewhere"), Azure()),
        (settings("westeurope", "elsewhere"), Azure(outputs=HOLDS)),
    ],
    ids=["the same place", "the display name", "before the first update", "nothing left in Azure"],
)
def test_accepts_a_stack_that_loses_nothing(wanted: Settings, azure: Azure) -> None:
    deploy(lambda: check_existing(wanted), azure)


def test_another_region_lists_lost_data_and_three_alternatives() -> None:
    lines = refused(settings("westeurope"), Azure(cluster=True, outputs=HOLDS))
    assert lines[0] == "location is westeurope, but the stack is in eastus"
    assert lines[1].endswith("data would be lost. Nothing was changed.")
    assert lines[2:5] == [
        "    cluster ai-on-aks-test: its workloads, and their data on persistent volumes",
        "    registry images.azurecr.io: its images",
        "    storage account models: all data in it",
    ]
    assert commands(lines) == [
        "pulumi config set -s test location eastus",
        "pulumi stack init test-2 --copy-config-from test --no-select && pulumi up -s test-2",
        "pulumi config set -s test location eastus",
        "pulumi destroy -s test && pulumi up -s test",
    ]


def test_the_fix_sets_the_key_that_has_the_region() -> None:
    of_provider = settings("westeurope", location_key="azure-native:location")
    lines = refused(of_provider, Azure(cluster=True, outputs=HOLDS))
    assert lines[0] == "azure-native:location is westeurope, but the stack is in eastus"
    assert "pulumi config set -s test azure-native:location eastus" in commands(lines)


def test_lists_the_commands_that_end_protection() -> None:
    def last_way(**storage: Any) -> str:
        found = StorageSettings.model_validate(DATA | storage)
        return refused(settings("westeurope", storage=found), Azure(cluster=True, outputs=HOLDS))[-2]

    assert "Or destroy (which fails until you run `pulumi state unprotect -s test --all`" in last_way()
    assert "fails" not in last_way(protect=False)


@pytest.mark.parametrize(
    ("azure", "storage", "lost"),
    [
        (Azure(account={"name": "models", "location": "eastus"}), DATA, "storage account models: all data in it"),
        (
            Azure(registry="Premium", outputs={**IN_EASTUS, "registry": "m.azurecr.io"}),
            {},
            "registry m.azurecr.io: its images",
        ),
    ],
    ids=["the account of a failed first update", "the registry of a first phase"],
)
def test_finds_data_of_a_stack_without_a_cluster(azure: Azure, storage: dict[str, Any], lost: str) -> None:
    chosen = settings("westeurope", storage=StorageSettings.model_validate(storage))
    assert f"    {lost}" in refused(chosen, azure)


@pytest.mark.parametrize(
    ("was", "wanted", "keep"),
    [
        ("ai-on-aks-test", "other", "pulumi config rm -s test --path cluster.resourceGroup"),
        ("other", None, "pulumi config set -s test --path cluster.resourceGroup other"),
        ("other", "another", "pulumi config set -s test --path cluster.resourceGroup other"),
    ],
)
def test_another_resource_group_is_rejected_with_the_old_one(was: str, wanted: str | None, keep: str) -> None:
    azure = Azure(cluster=True, outputs=HOLDS | {"resourceGroup": was})
    lines = refused(settings(group=wanted), azure)
    assert lines[0] == f"the resource group is {was}, and would be {wanted or 'ai-on-aks-test'}"
    assert commands(lines)[0] == keep
    asked = [arguments for token, arguments in azure.calls if token.endswith(":getManagedCluster")]
    assert [arguments["resourceGroupName"] for arguments in asked] == [was]


def test_a_renamed_stack_is_rejected_with_the_old_name() -> None:
    before = {"resourceGroup": "ai-on-aks-before", "clusterName": "ai-on-aks-before"}
    lines = refused(settings(), Azure(cluster=True, outputs=before))
    assert lines[0] == "the cluster is ai-on-aks-before, and would be ai-on-aks-test"
    assert commands(lines)[0] == "pulumi stack rename -s test before"
    assert not [line for line in lines if "resource group" in line]


def test_the_second_stack_does_not_copy_unique_names() -> None:
    names: dict[str, Any] = {
        "registry": RegistrySettings(name="images"),
        "storage": StorageSettings(account_name="models"),
    }
    lines = refused(
        settings("westeurope", "chosen", **names), Azure(cluster=True, outputs=HOLDS | {"resourceGroup": "chosen"})
    )
    (beside,) = [line for line in commands(lines) if "stack init" in line]
    assert re.findall(r"config rm -s test-2 --path (\S+)", beside) == [
        "cluster.resourceGroup",
        "registry.name",
        "storage.accountName",
    ]
