"""The real Azure CLI against simulated Resource Manager: the commands of the upstream documents, and of daily work.

No cluster runs behind it (`FakeBackend`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from simulator.azure import features
from simulator.azure.gateway import Gateway
from simulator.azure.types.agent_pool import life
from simulator.world.faults import new_fault
from tests.stories import document_lines
from tests.stories.document_cluster import DIFFERENCES, program_cluster, unexplained
from tests.stories.document_lines import AKS, GROUP, HERE, POOL
from tests.support import networks as net
from tests.support.arm import H100, SUBSCRIPTION, TOKEN, Arm, FakeBackend, start
from tests.support.azure_cli import AzureCli, of_arm

pytestmark = pytest.mark.long
AUTOMATION = SUBSCRIPTION.directory["automation"]
GRACE = SUBSCRIPTION.directory["grace"]
DAILY = [
    ("identity create --resource-group rg --name mine", '"name": "mine"'),
    ("identity update --resource-group rg --name mine --tags team=a --query tags.team", "a"),
    ("provider register --namespace Microsoft.ContainerService --wait", ""),
    ("account list-locations --query [].name -o tsv", "northeurope"),
    ("provider show --namespace Microsoft.Compute --query registrationState", "Registered"),
    ("resource list --query [].name -o tsv", "aks"),
    ("aks get-versions --location eastus -o table", "KubernetesOfficial"),
    (f"aks get-upgrades {AKS} -o table", "default"),
    (f"aks nodepool get-upgrades {POOL} --nodepool-name ndv5 --query latestNodeImageVersion", "AKSUbuntu"),
    (f"aks nodepool upgrade {POOL} --name ndv5 --node-image-only --yes", ""),
    (f"aks machine list {POOL} --nodepool-name ndv5 --query [].name -o tsv", "aks-ndv5-"),
    (f"aks command invoke {AKS} --command 'kubectl get pods -A'", "kubectl get pods -A"),
    (f"aks rotate-certs {AKS} --yes", ""),
    (f"aks stop {AKS}", ""),
    (f"aks show {AKS} --query powerState.code", "Stopped"),
    (f"aks start {AKS}", ""),
    ("group show --name rg-nrg --query managedBy", "managedClusters/aks"),
    ("vmss list --resource-group rg-nrg --query [].name -o tsv", "aks-ndv5-"),
    ("storage account create --resource-group rg --name models123 --location eastus --sku Standard_LRS", "models123"),
    (
        "storage account update --resource-group rg --name models123 --allow-shared-key-access false",
        '"allowSharedKeyAccess": false',
    ),
    (
        "storage account keys renew --resource-group rg --account-name models123 --key key1 --query [].keyName -o tsv",
        "key2",
    ),
    ("storage account revoke-delegation-keys --resource-group rg --name models123", ""),
    ("acr update --name aiimages --tags team=a --query tags.team", "a"),
    ("acr check-name --name images --query nameAvailable", "false"),
    (f"role assignment create --role Reader --assignee {AUTOMATION.client_id} --scope {GROUP}", AUTOMATION.object_id),
    (f"role assignment list --assignee {AUTOMATION.client_id} --all --query [].roleDefinitionName -o tsv", "Reader"),
    ("network vnet create --resource-group rg --name vnet --subnet-name ends", '"newVNet"'),
    (
        "network private-endpoint create --resource-group rg --name ends --vnet-name vnet --subnet ends "
        "--group-id blob --connection-name ends --private-connection-resource-id "
        f"{GROUP}/providers/Microsoft.Storage/storageAccounts/models123 --query name",
        "ends",
    ),
    ("role definition list --name AcrPull --query [].name -o tsv", "7f951dda-4ed3-4680-a7ca-43fe172d538d"),
    (f"role assignment create --role Reader --assignee {GRACE.upn} --scope {GROUP}", GRACE.object_id),
    (f"role assignment list --assignee {GRACE.upn} --scope {GROUP} --query [].principalName -o tsv", GRACE.upn),
    (f"role assignment delete --assignee {GRACE.upn} --role Reader --scope {GROUP}", ""),
    (f"ad sp show --id {AUTOMATION.client_id} --query id", AUTOMATION.object_id),
    (f"ad group show --group {GRACE.groups[0]} --query id", GRACE.groups[0]),
    ("lock list --resource-group rg", "[]"),
]
PRINTED = [
    # What messages of the program tell people to run.
    (f"lock delete --ids {GROUP}/providers/Microsoft.Authorization/locks/simulated-cannotdelete", ""),
    (
        "policy assignment show --name require-tag --scope /providers/Microsoft.Management/managementGroups/contoso "
        "--query parameters.tagName.value",
        "CostCenter",
    ),
    ("network list-usages --location eastus --query [].name.value -o tsv", "PublicIPAddresses"),
    ("network route-table create --resource-group rg --name out --location eastus", '"provisioningState": "Succeeded"'),
    (
        "network route-table route create --resource-group rg --route-table-name out --name out "
        "--address-prefix 0.0.0.0/0 --next-hop-type VirtualAppliance --next-hop-ip-address 10.0.0.4",
        '"nextHopType": "VirtualAppliance"',
    ),
    ("network route-table route list --resource-group rg --route-table-name out --query [].name -o tsv", "out"),
    ("network route-table route show --resource-group rg --route-table-name out --name out --query name", "out"),
    ("network route-table route delete --resource-group rg --route-table-name out --name out", ""),
]
WITHOUT_AGENT = [
    "vm user update --resource-group rg --name jump --username me --ssh-key-value 'ssh-ed25519 AAAA'",
    "vmss run-command invoke --resource-group rg-nrg --name aks-ndv5-1-vmss --instance-id 0 "
    "--command-id RunShellScript --scripts 'tail -50 /var/log/azure/cluster-provision.log'",
]
REFUSED = [
    *document_lines.REFUSED,
    (
        f"resource show --ids {GROUP}/providers/Microsoft.ContainerService/managedClusters/aks "
        "--api-version 2099-01-01",
        "No registered resource provider found for location 'eastus' and API version '2099-01-01'",
    ),
    ("provider show --namespace Microsoft.Nothing", "The resource namespace 'Microsoft.Nothing' is invalid"),
    (
        f"rest --method put --url {HERE}/resourceGroups/other?api-version=2024-03-01 --body []",
        "a JSON object is required",
    ),
    (f"role assignment create --role Emperor --assignee {GRACE.upn} --scope {GROUP}", "Role 'Emperor' doesn't exist"),
    (
        f"role assignment create --role Reader --assignee nobody@contoso.example --scope {GROUP}",
        "Cannot find user or service principal",
    ),
    (
        "rest --method get --url https://management.azure.com/subscriptions?api-version=2022-12-01",
        "does not let requests to Microsoft out",
    ),
    ("rest --method get --url http://management.azure.com/subscriptions", "does not let requests to Microsoft out"),
    ("group create --name rg-nrg --location eastus", "ResourceGroupManagedByMismatch"),
    (
        "aks create --resource-group rg --name other --no-ssh-key --assign-identity "
        f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/gone",
        "FailedIdentityOperation",
    ),
    (
        f"login --service-principal -u {AUTOMATION.client_id} -p {TOKEN} --tenant 00000000-0000-4000-8000-0000000000ff",
        "Unable to get authority configuration",
    ),
    (
        f"login --service-principal -u {AUTOMATION.client_id} -p wrong --tenant {SUBSCRIPTION.tenant_id}",
        "AADSTS7000215",
    ),
]


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arm]:
    home = tmp_path_factory.mktemp("simulator")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIMULATOR_HOME", str(home))
        patch.setattr(life, "ALLOCATION_S", 0.01)
        patch.setattr(features, "CHANGING_S", 0.2)  # less than the Azure CLI takes to start
        started = start(home / "azure", FakeBackend())
        yield started
        started.stop()


@pytest.fixture(scope="module")
def az(arm: Arm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureCli]:
    gateway = Gateway(0, arm.server.world, arm.server.port)
    cli = of_arm(arm, gateway, tmp_path_factory.mktemp("azure-cli"))
    cli.log_in()
    yield cli
    gateway.stop()


def test_every_line_of_the_documents_ends_as_on_azure(az: AzureCli) -> None:
    assert az.failing(document_lines.AI_ON_AKS + document_lines.AV_RESIM) == {}


def test_the_machine_that_runs_the_lines_gets_its_role(az: AzureCli, arm: Arm) -> None:
    net.make_network(arm)
    net.make(arm, net.INTERFACE, net.interface_body())
    net.make(arm, net.MACHINE, net.machine_body())
    principal = az.run("vm show -g rg -n jump --query identity.principalId -o tsv").output
    assert az.failing([document_lines.role_of_machine(principal)]) == {}


def test_commands_of_daily_work_end_as_on_azure(az: AzureCli) -> None:
    assert az.failing(DAILY) == {}


def test_commands_that_messages_print_end_as_on_azure(az: AzureCli, arm: Arm) -> None:
    faults = arm.server.world.faults
    faults.fault(new_fault("lock", level="CanNotDelete", scope="rg"))
    faults.fault(new_fault("policy", tag="CostCenter"))
    assert az.failing(PRINTED) == {}
    assert [each.kind for each in faults.heal()] == ["policy"], "the lock is gone"


def test_no_agent_runs_on_machines(az: AzureCli) -> None:
    errors = {line: az.run(line).errors for line in WITHOUT_AGENT}
    assert {line for line in WITHOUT_AGENT if "please ensure VM Agent is installed" not in errors[line]} == set(), (
        errors
    )


@pytest.mark.parametrize(("line", "words"), REFUSED)
def test_refusals_are_azures(az: AzureCli, line: str, words: str) -> None:
    result = az.run(line)
    assert (result.code != 0, words in result.errors) == (True, True), result.errors


def test_its_nodes_differ_from_the_program_s_where_a_reason_is_given(az: AzureCli, arm: Arm) -> None:
    both = [program_cluster(arm), json.loads(az.run(f"aks show {AKS}").output)["id"]]
    nodes = {key.lower(): of for key, of in arm.backend.nodes.items()}
    ours, theirs = (
        next(node for node in nodes[cluster.lower()] if H100 in node["metadata"]["labels"].values()) for cluster in both
    )
    assert unexplained([(ours, theirs)], DIFFERENCES["nodes"]) == (set(), set())


def test_logging_out_and_in_again(az: AzureCli) -> None:
    assert az.run("logout").code == 0
    assert "Please run 'az login'" in az.run("aks list").errors
    login = f"login --service-principal -u {AUTOMATION.client_id} -p {TOKEN} --tenant {SUBSCRIPTION.tenant_id}"
    for line in (login, "aks show --resource-group rg --name aks"):  # it is a Reader there
        result = az.run(line)
        assert result.code == 0, result.errors
    refused = az.run("identity create --resource-group rg --name theirs").errors
    assert f"The client '{AUTOMATION.client_id}' with object id '{AUTOMATION.object_id}' does not have auth" in refused
    assert az.run("logout").code == 0
    unknown = "login --identity --client-id 00000000-0000-0000-0000-000000000009"
    assert "No User Assigned or Delegated Managed Identity found" in az.run(unknown).errors
