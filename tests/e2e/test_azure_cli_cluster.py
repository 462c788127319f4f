"""The official Azure CLI on a simulated cluster and blob service.

kubectl, the API server and a blob client with only a SAS check the effects.
"""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from tests.support.azure_cli import AzureCli
from tests.support.world import World, eventually

pytestmark = [pytest.mark.simulator, pytest.mark.long]
AKS = "--resource-group day-two --name day-two"
OLD = "--kubernetes-version 1.33 --k8s-support-plan AKSLongTermSupport --tier premium"
"""A version whose clusters have no OIDC issuer by default."""
TIMEOUT_S = 300
ACCOUNT = "daytwodata"
GENERATE = f"storage container generate-sas --account-name {ACCOUNT} --name files --permissions cwl --output tsv"
CONTRIBUTOR = "Storage Blob Data Contributor"


@pytest.fixture(scope="module")
def az(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureCli]:
    cli = AzureCli(tmp_path_factory.mktemp("azure-cli"), world.environment)
    cli.log_in()
    run(cli, "group create --name day-two --location eastus")
    run(cli, f"aks create {AKS} --node-count 1 --nodepool-name system --no-ssh-key {OLD}")
    yield cli
    run(cli, "group delete --name day-two --yes")


def run(az: AzureCli, line: str) -> str:
    result = az.run(line)
    assert result.code == 0, f"{line}\n{result.output}\n{result.errors}"
    return result.output


def run_failing(az: AzureCli, line: str) -> str:
    result = az.run(line)
    assert result.code != 0, f"{line}\n{result.output}"
    return result.errors


def kubectl(az: AzureCli, world: World, command: str, *, file: str = "kubeconfig") -> str:
    environment = world.environment | {"KUBECONFIG": str(az.folder / file)}
    answer = world.run(["kubectl", *command.split(), "--request-timeout=20s"], check=False, environment=environment)
    return answer.stdout + answer.stderr


def is_ready(az: AzureCli, world: World, file: str = "kubeconfig") -> bool:
    return " Ready " in kubectl(az, world, "get nodes", file=file)


def test_the_kubeconfig_works(az: AzureCli, world: World) -> None:
    run(az, f"aks get-credentials {AKS} --file kubeconfig")
    eventually(lambda: is_ready(az, world), "its node is Ready", TIMEOUT_S)
    (scale_set,) = run(az, "vmss list --resource-group MC_day-two_day-two_eastus --query [].name -o tsv").splitlines()
    assert kubectl(az, world, "get nodes -o name").strip() == f"node/{scale_set}000000"


def test_command_invoke_runs_commands_in_the_cluster(az: AzureCli, world: World) -> None:
    printed = run(az, f"aks command invoke {AKS} --command 'kubectl get nodes -o name'")
    assert ("exitcode=0" in printed, kubectl(az, world, "get nodes -o name").strip() in printed) == (True, True)
    failed = run(az, f"aks command invoke {AKS} --command 'kubectl get moons'")
    assert ("exitcode=1" in failed, "the server doesn't have a resource type" in failed) == (True, True), failed


def test_an_update_reaches_the_api_server(az: AzureCli, world: World) -> None:
    assert run(az, f"aks show {AKS} --query oidcIssuerProfile.enabled") == "false"
    run(az, f"aks update {AKS} --enable-oidc-issuer --tags team=a")
    issuer = run(az, f"aks show {AKS} --query oidcIssuerProfile.issuerUrl -o tsv")
    claims = kubectl(az, world, "create token default").split(".")[1]
    assert json.loads(base64.urlsafe_b64decode(claims + "=="))["iss"] == issuer
    assert run(az, f"aks show {AKS} --query tags.team -o tsv") == "a"


def test_an_upgrade_keeps_the_newest_node_image(az: AzureCli, world: World) -> None:
    version = "get nodes -L kubernetes.azure.com/node-image-version --no-headers"
    pool = "--resource-group day-two --cluster-name day-two"
    before = kubectl(az, world, version).split()[-1]
    newest = f"aks nodepool get-upgrades {pool} --nodepool-name system --query latestNodeImageVersion -o tsv"
    assert run(az, newest) == before
    run(az, f"aks nodepool upgrade {pool} --name system --node-image-only --yes")
    assert kubectl(az, world, version).split()[-1] == before


def test_a_stopped_cluster_is_not_reachable_until_it_is_started(az: AzureCli, world: World) -> None:
    run(az, f"aks stop {AKS}")
    assert "was refused" in kubectl(az, world, "get nodes")
    words = "managed cluster is in Provisioning State(Succeeded) and Power State(Stopped)"
    assert words in run_failing(az, f"aks command invoke {AKS} --command 'kubectl get nodes'")
    assert words in run_failing(az, f"aks update {AKS} --tags team=b")
    run(az, f"aks start {AKS}")
    eventually(lambda: is_ready(az, world), "its node is Ready again", TIMEOUT_S)


def test_rotating_certificates_invalidates_the_old_kubeconfig(az: AzureCli, world: World) -> None:
    run(az, f"aks rotate-certs {AKS} --yes")
    assert "certificate signed by unknown authority" in kubectl(az, world, "get nodes")
    run(az, f"aks get-credentials {AKS} --file new")
    eventually(lambda: is_ready(az, world, "new"), "its node is Ready again", TIMEOUT_S)


def put(world: World, sas: str) -> tuple[int, str]:
    trusted = ssl.create_default_context(cafile=world.environment["SSL_CERT_FILE"])
    proxy = world.environment["HTTPS_PROXY"]
    with httpx.Client(proxy=proxy, verify=trusted, trust_env=False, timeout=TIMEOUT_S) as client:
        url = f"https://{ACCOUNT}.blob.core.windows.net/files/a.txt?{sas}"
        answer = client.put(url, content=b"a", headers={"x-ms-blob-type": "BlockBlob"})
    return answer.status_code, answer.headers.get("x-ms-error-code", "")


def expiry() -> str:
    return (datetime.now(UTC) + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%MZ")


def test_a_new_key_invalidates_sas_of_the_old_key(az: AzureCli, world: World) -> None:
    run(az, f"storage account create --resource-group day-two --name {ACCOUNT} --location eastus --sku Standard_LRS")
    run(az, f"storage container create --account-name {ACCOUNT} --name files --auth-mode key")
    sas = run(az, f"{GENERATE} --expiry {expiry()}")
    assert put(world, sas) == (201, "")
    run(az, f"storage account keys renew --resource-group day-two --account-name {ACCOUNT} --key primary")
    # Azurite's code. Azure's is AuthenticationFailed.
    eventually(lambda: put(world, sas) == (403, "AuthorizationFailure"), "the old SAS is refused", TIMEOUT_S)
    assert put(world, run(az, f"{GENERATE} --expiry {expiry()}")) == (201, "")


def test_a_user_delegation_sas_has_the_rights_of_its_signer_until_it_is_revoked(az: AzureCli, world: World) -> None:
    sas = run(az, f"{GENERATE} --auth-mode login --as-user --expiry {expiry()}")
    assert ("skoid=" in sas, put(world, sas)) == (True, (403, "AuthorizationPermissionMismatch"))
    scope = run(az, f"storage account show --name {ACCOUNT} --query id -o tsv")
    signer = run(az, "ad sp list --display-name deployer --query [0].id -o tsv")
    run(az, f"role assignment create --role '{CONTRIBUTOR}' --assignee {signer} --scope {scope}")
    assert put(world, sas) == (201, "")
    run(az, f"storage account revoke-delegation-keys --resource-group day-two --name {ACCOUNT}")
    assert put(world, sas) == (403, "AuthenticationFailed")
