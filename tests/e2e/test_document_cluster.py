from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.document_cluster import DIFFERENCES, unexplained
from tests.e2e.document_lines import blob_tokens, lines
from tests.support.azure_cli import AzureCli
from tests.support.world import Stack, World, eventually

pytestmark = [pytest.mark.simulator, pytest.mark.long]


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    dev = new_stack("dev")
    dev.up()
    return dev


@pytest.fixture(scope="module")
def az(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureCli]:
    cli = AzureCli(tmp_path_factory.mktemp("azure-cli"), world.environment)
    cli.log_in()
    yield cli
    deleted = cli.run("group delete --name rg --yes")
    assert deleted.code == 0, deleted.errors


def test_every_command_of_the_document_works_beside_a_stack(stack: Stack, az: AzureCli) -> None:
    register, registered, *others = lines("ai_on_aks")
    assert az.failing([register]) == {}
    eventually(lambda: az.failing([registered]) == {}, "the feature is Registered", 120)
    assert az.failing(others + lines("av_resim") + lines("log_out_and_in")) == {}


def test_its_commands_sign_sas_of_containers(stack: Stack, az: AzureCli) -> None:
    account = "storage account create --resource-group rg --name resimdata --location eastus --sku Standard_LRS"
    container = "storage container create --account-name resimdata --name input --auth-mode key"
    assert az.failing([(account, "resimdata"), (container, "true"), *blob_tokens("resimdata", "input")]) == {}


def test_both_clusters_differ_only_for_documented_reasons(stack: Stack, az: AzureCli) -> None:
    both = [
        json.loads(az.run(f"aks show --resource-group {group} --name {name}").output)
        for group, name in ((stack.outputs()["resourceGroup"], stack.outputs()["clusterName"]), ("rg", "aks"))
    ]
    pools = [
        {each["mode"]: each for each in cluster.pop("agentPoolProfiles") if each["scaleSetPriority"] != "Spot"}
        for cluster in both
    ]
    pairs = [both, *([of[mode] for of in pools] for mode in ("System", "User"))]
    assert unexplained(((ours, theirs) for ours, theirs in pairs), DIFFERENCES["cluster"]) == (set(), set())
