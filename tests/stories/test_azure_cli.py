"""The real Azure CLI against simulated Resource Manager: the commands of the upstream documents, and of daily work.

No cluster runs behind it (`FakeBackend`). Of the documents' lines are left out: Bicep, `az acr login`, extensions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from simulator.azure.gateway import Gateway
from simulator.azure.types.agent_pool import life
from simulator.host import paths
from tests.support.arm import SUBSCRIPTION, TOKEN, Arm, FakeBackend, start
from tests.support.azure_cli import AzureCli, of_arm

pytestmark = pytest.mark.long
GOLDEN = paths.ROOT / "tests" / "support" / "golden"
INPUT_NAMES = ("resourceGroupName", "resourceName", "agentPoolName")
HERE = f"/subscriptions/{SUBSCRIPTION.subscription_id}"
GROUP = f"{HERE}/resourceGroups/rg"
POOL = "--resource-group rg --cluster-name aks"
AKS = "--resource-group rg --name aks"
GRACE = SUBSCRIPTION.directory["grace"]
AUTOMATION = SUBSCRIPTION.directory["automation"]
DOCUMENT = [
    # https://github.com/edwardsp/ai-on-aks, README.md
    ("feature register --name AKSInfinibandSupport --namespace Microsoft.ContainerService", '"state": "Registered"'),
    (
        "feature show --name AKSInfinibandSupport --namespace Microsoft.ContainerService "
        "--query properties.state --output tsv",
        "Registered",
    ),
    ("provider register --namespace Microsoft.ContainerService --wait", ""),
    ("group create --name rg --location eastus", '"provisioningState": "Succeeded"'),
    (
        "acr create --resource-group rg --name aiimages --sku Basic --admin-enabled",
        '"loginServer": "aiimages.azurecr.io"',
    ),
    (
        f"aks create {AKS} --node-resource-group rg-nrg --enable-managed-identity --node-count 2 --generate-ssh-keys "
        "--location eastus --node-vm-size Standard_D2s_v3 --nodepool-name system --os-sku Ubuntu "
        "--attach-acr aiimages",
        '"nodeResourceGroup": "rg-nrg"',
    ),
    (
        f"aks nodepool add {POOL} --name ndv5 --node-count 1 --node-vm-size Standard_ND96isr_H100_v5 "
        "--node-osdisk-size 128 --os-sku Ubuntu --tags SkipGPUDriverInstall=true",
        '"maxSurge": "10%"',
    ),
    (f"aks get-credentials {AKS} --file kubeconfig", "Merged"),
    (f"aks nodepool scale {POOL} --name ndv5 --node-count 2", '"count": 2'),
    # https://github.com/edwardsp/av-resim-on-aks, README.md
    (
        f"aks nodepool add {POOL} --name nc4ast4 --node-vm-size Standard_NC4as_T4_v3 --priority Spot "
        "--eviction-policy Delete --spot-max-price -1 --node-taints sku=gpu:NoSchedule --enable-cluster-autoscaler "
        "--min-count 1 --max-count 2 --node-count 1",
        '"scaleSetPriority": "Spot"',
    ),
    (f"aks update {AKS} --attach-acr aiimages", '"name": "aks"'),
    (f"role assignment create --role Reader --assignee {AUTOMATION.client_id} --scope {GROUP}", AUTOMATION.object_id),
]
DAILY = [
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
    ("role definition list --name AcrPull --query [].name -o tsv", "7f951dda-4ed3-4680-a7ca-43fe172d538d"),
    (f"role assignment create --role Reader --assignee {GRACE.upn} --scope {GROUP}", GRACE.object_id),
    (f"role assignment list --assignee {GRACE.upn} --scope {GROUP} --query [].principalName -o tsv", GRACE.upn),
    (f"role assignment delete --assignee {GRACE.upn} --role Reader --scope {GROUP}", ""),
    (f"ad sp show --id {AUTOMATION.client_id} --query id", AUTOMATION.object_id),
    (f"ad group show --group {GRACE.groups[0]} --query id", GRACE.groups[0]),
    ("lock list --resource-group rg", "[]"),
]
REFUSED = [
    (
        f"aks nodepool add {POOL} --name wrong --node-vm-size Standard_NCA100ads_A100_v4",
        "is not supported for subscription",
    ),
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


def ends(az: AzureCli, commands: list[tuple[str, str]]) -> dict[str, str]:
    """What those commands printed that failed, or did not print what they should."""
    results = {line: (az.run(line), wanted) for line, wanted in commands}
    return {
        line: f"{result.code}: {result.output[-300:]} {result.errors[-900:]}"
        for line, (result, wanted) in results.items()
        if result.code != 0 or wanted not in result.output + result.errors
    }


def test_every_line_of_the_documents_ends_as_on_azure(az: AzureCli) -> None:
    assert ends(az, DOCUMENT) == {}


def test_commands_of_daily_work_end_as_on_azure(az: AzureCli) -> None:
    assert ends(az, DAILY) == {}


@pytest.mark.parametrize(("line", "words"), REFUSED)
def test_refusals_are_azures(az: AzureCli, line: str, words: str) -> None:
    result = az.run(line)
    assert (result.code != 0, words in result.errors) == (True, True), result.errors


DIFFERENCES = {
    # Path in `az aks show`: why the program's `dev` has another value than the document.
    "aadProfile": "people log in by Entra, with roles of Azure",
    "autoUpgradeProfile": "AKS does not re-create GPU nodes on its own; the document takes the default",
    "enableEncryptionAtHost": "the CLI sends false, the program leaves the default",
    "gpuProfile.driver": "the GPU operator installs the driver; the document's tag has no effect since August 2025",
    "linuxProfile": "the program gives no SSH keys to nodes",
    "networkProfile.podCidr": "room for more nodes than AKS's default",
    "networkProfile.podCidrs": "as podCidr",
    "nodeLabels": "labels by which operators and jobs select nodes",
    "nodeTaints": "a taint keeps other pods off GPU nodes",
    "oidcIssuerProfile": "workload identity needs an issuer",
    "osDiskSizeGb": "the document's 128 GB do not hold large images",
    "securityProfile.workloadIdentity": "pods get tokens of managed identities",
    "sku.tier": "an SLA for long jobs",
    "storageProfile.blobCsiDriver": "pods mount blob containers",
    "tags": "the document's SkipGPUDriverInstall",
    "upgradeSettings": "upgrades need no extra GPU nodes",
    "vmSize": "of the system pool: a size that has an ephemeral disk",
}
OWN = {
    *(
        "id",
        "name",
        "resourceGroup",
        "nodeResourceGroup",
        "resourceUid",
        "eTag",
        "fqdn",
        "azurePortalFqdn",
        "dnsPrefix",
    ),
    *("identityProfile", "principalId", "effectiveOutboundIPs"),
}
"""Names and ids of the cluster itself."""


def program_cluster(arm: Arm) -> None:
    """Makes the cluster of the stack `dev` as the program declares it (`tests/support/golden`)."""
    declared = json.loads((GOLDEN / "dev.json").read_text())
    types = {name.split(" ")[0].rpartition(":")[2]: each["inputs"] for name, each in declared.items()}
    group = f"{HERE}/resourceGroups/{types['ManagedCluster']['resourceGroupName']}"
    cluster = f"{group}/providers/Microsoft.ContainerService/managedClusters/{types['ManagedCluster']['resourceName']}"
    assert arm.put(group, {"location": "eastus"}).status_code == 201
    for path, kind in ((cluster, "ManagedCluster"), (f"{cluster}/agentPools/gpu", "AgentPool")):
        inputs = {name: value for name, value in types[kind].items() if name not in INPUT_NAMES}
        top = {name: inputs.pop(name) for name in ("location", "identity", "sku") if name in inputs}
        answer = arm.put(path, {**top, "properties": inputs})
        assert answer.status_code == 201, answer.text
        arm.done()


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """Leaves by their dotted paths, without empty ones and names."""
    if isinstance(value, dict):
        parts = [flat(inner, f"{path}.{name}".strip(".")) for name, inner in value.items() if name not in OWN]
        return {name: leaf for part in parts for name, leaf in part.items()}
    return {} if value in (None, [], "") else {path: value}


def test_a_cluster_of_the_document_differs_from_the_program_s_where_a_reason_is_given(az: AzureCli, arm: Arm) -> None:
    program_cluster(arm)
    dev = json.loads(az.run("aks show --resource-group ai-on-aks-dev --name ai-on-aks-dev").output)
    document = json.loads(az.run(f"aks show {AKS}").output)
    differing: set[str] = set()
    profiles = [cluster.pop("agentPoolProfiles") for cluster in (dev, document)]
    pools = [{each["mode"]: each for each in of if each["scaleSetPriority"] != "Spot"} for of in profiles]
    for mine, theirs in ((dev, document), *((pools[0][mode], pools[1][mode]) for mode in ("System", "User"))):
        ours, others = flat(mine), flat(theirs)
        differing |= {path for path in ours.keys() | others.keys() if ours.get(path) != others.get(path)}
    unexplained = {path for path in differing if not any(f"{path}.".startswith(f"{known}.") for known in DIFFERENCES)}
    unused = {known for known in DIFFERENCES if not any(f"{path}.".startswith(f"{known}.") for path in differing)}
    assert (unexplained, unused) == (set(), set())


def test_logging_out_and_in_again(az: AzureCli) -> None:
    assert az.run("logout").code == 0
    assert "Please run 'az login'" in az.run("aks list").errors
    login = f"login --service-principal -u {AUTOMATION.client_id} -p {TOKEN} --tenant {SUBSCRIPTION.tenant_id}"
    for line in (login, "logout"):
        result = az.run(line)
        assert result.code == 0, result.errors
