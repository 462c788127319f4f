"""The official Azure CLI with simulated Resource Manager, without clusters (`FakeBackend`)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from simulator.azure import domains, features
from simulator.azure.gateway import Gateway
from simulator.azure.types.agent_pool import life
from simulator.world.faults import new_fault
from tests.e2e.document_cluster import DIFFERENCES, program_cluster, unexplained
from tests.e2e.document_lines import AKS, lines, login, role_of_machine
from tests.support import networks as net
from tests.support.arm import SUBSCRIPTION, TOKEN, Arm, FakeBackend, start
from tests.support.azure_cli import AzureCli
from tests.support.sizes import H100

pytestmark = pytest.mark.long
AUTOMATION = SUBSCRIPTION.directory["automation"]


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arm]:
    home = tmp_path_factory.mktemp("simulator")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIMULATOR_HOME", str(home))
        patch.setattr(life, "ALLOCATION_S", 0.01)
        patch.setattr(features, "CHANGING_S", 0.2)  # less than the CLI's start
        started = start(home / "azure", FakeBackend())
        yield started
        started.stop()


@pytest.fixture(scope="module")
def az(arm: Arm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureCli]:
    gateway = Gateway(0, arm.server.world, arm.server.port)
    environment = {
        "SIMULATOR_ARM_ENDPOINT": arm.server.endpoint,
        "IDENTITY_ENDPOINT": f"{arm.server.endpoint}{domains.IDENTITY}",
        "IDENTITY_HEADER": TOKEN,
        "REQUESTS_CA_BUNDLE": arm.ca_file,
        **dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"), domains.proxy(gateway.port, "")),
        "NO_PROXY": "127.0.0.1,localhost",
    }
    cli = AzureCli(tmp_path_factory.mktemp("azure-cli"), environment)
    cli.log_in()
    yield cli
    gateway.stop()


def test_commands_of_the_documents_end_as_on_azure(az: AzureCli) -> None:
    assert az.failing(lines("ai_on_aks") + lines("av_resim")) == {}


def test_the_jump_box_gets_its_role(az: AzureCli, arm: Arm) -> None:
    net.make_network(arm)
    net.make(arm, net.INTERFACE, net.interface_body())
    net.make(arm, net.MACHINE, net.machine_body())
    principal = az.run("vm show -g rg -n jump --query identity.principalId -o tsv").output
    assert az.failing([role_of_machine(principal)]) == {}


def test_commands_of_daily_work_end_as_on_azure(az: AzureCli) -> None:
    assert az.failing(lines("daily")) == {}


def test_commands_of_messages_end_as_on_azure(az: AzureCli, arm: Arm) -> None:
    faults = arm.server.world.faults
    faults.fault(new_fault("lock", level="CanNotDelete", scope="rg"))
    faults.fault(new_fault("policy", tag="CostCenter"))
    assert az.failing(lines("printed")) == {}
    assert [each.kind for each in faults.heal()] == ["policy"], "the lock is gone"


@pytest.mark.parametrize(("line", "words"), lines("refused"))
def test_errors_are_those_of_azure(az: AzureCli, line: str, words: str) -> None:
    result = az.run(line)
    assert (result.code != 0, words in result.errors) == (True, True), result.errors


def test_nodes_differ_from_those_of_the_program_only_for_documented_reasons(az: AzureCli, arm: Arm) -> None:
    both = [program_cluster(arm), json.loads(az.run(f"aks show {AKS}").output)["id"]]
    nodes = {key.lower(): of for key, of in arm.backend.nodes.items()}
    ours, theirs = (
        next(node for node in nodes[cluster.lower()] if H100 in node["metadata"]["labels"].values()) for cluster in both
    )
    assert unexplained([(ours, theirs)], DIFFERENCES["nodes"]) == (set(), set())


def test_logs_out_and_in_as_another_principal(az: AzureCli) -> None:
    assert az.run("logout").code == 0
    assert "Please run 'az login'" in az.run("aks list").errors
    for line in (login(), "aks show --resource-group rg --name aks"):  # a Reader there
        result = az.run(line)
        assert result.code == 0, result.errors
    refused = az.run("identity create --resource-group rg --name theirs").errors
    client, principal = AUTOMATION.client_id, AUTOMATION.object_id
    assert f"The client '{client}' with object id '{principal}' does not have auth" in refused
    assert az.run("logout").code == 0
    unknown = "login --identity --client-id 00000000-0000-0000-0000-000000000009"
    assert "No User Assigned or Delegated Managed Identity found" in az.run(unknown).errors
