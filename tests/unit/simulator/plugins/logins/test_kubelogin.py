from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
import yaml

from components.access import kubeconfig
from simulator.command import environment
from simulator.host import paths
from simulator.plugins.kubernetes import exec_credentials
from simulator.plugins.kubernetes.kubeconfig import KubeconfigError
from simulator.plugins.logins import az
from simulator.tools.packages import packages
from tests.support.arm import CLUSTER, SUBSCRIPTION, TOKEN, Arm, cluster_body
from tests.support.azure_cli import AzureCli
from tests.support.blob_account import CREDENTIAL, IDENTITY
from tests.support.mocked_azure import SERVER_APP
from tests.unit.simulator.plugins.logins.conftest import Enter

GRACE, AUTOMATION = (SUBSCRIPTION.directory[name] for name in ("grace", "automation"))
TENANT, OTHER_TENANT = SUBSCRIPTION.tenant_id, "00000000-0000-4000-8000-0000000000ff"
GET = ["get-token", "--server-id", SERVER_APP, "--login"]
SPN = [*GET, "spn", "--client-id", AUTOMATION.client_id]
TRUST: dict[str, Any] = {"issuer": "", "subject": "system:serviceaccount:ai:blobs", "audiences": ["api://x"]}
ENTRA = {"aadProfile": {"managed": True, "enableAzureRBAC": True}}


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [str(environment.LOGINS / "kubelogin"), *arguments]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)


def got(arm: Arm, *arguments: str, **variables: str) -> str:
    done = run(*arguments, **variables)
    assert done.returncode == 0, done.stderr
    credential = json.loads(done.stdout)
    claims = arm.server.tokens.claims(credential["status"]["token"]) or {}
    assert (claims.get("aud"), credential["kind"]) == (SERVER_APP, "ExecCredential")
    oid: str = claims["oid"]
    return oid


def refused(*arguments: str, **variables: str) -> str:
    done = run(*arguments, **variables)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


@pytest.fixture
def aks_kubeconfig(arm: Arm) -> str:
    """AKS returns this kubeconfig without local accounts."""
    assert arm.put(CLUSTER, cluster_body(**ENTRA, disableLocalAccounts=True)).status_code == 201
    arm.done()
    answer = arm.call("POST", f"{CLUSTER}/listClusterUserCredential").json()
    return kubeconfig.decode(answer["kubeconfigs"][0]["value"])


def test_msi_gets_a_token_of_the_deployer_or_of_the_named_identity(arm: Arm) -> None:
    assert got(arm, *GET, "msi") == SUBSCRIPTION.object_id
    ids = arm.put(IDENTITY, {"location": "eastus"}).json()["properties"]
    assert got(arm, *GET, "msi", AZURE_CLIENT_ID=ids["clientId"]) == ids["principalId"]
    error = refused(*GET, "msi", AZURE_CLIENT_ID=AUTOMATION.client_id)
    assert error.startswith("Error: failed to get token: ManagedIdentityCredential authentication failed.")
    assert "No User Assigned or Delegated Managed Identity found" in error


def test_spn_needs_the_secret_of_the_application(arm: Arm) -> None:
    error = refused(*SPN, "--tenant-id", TENANT)
    assert error.startswith("Error: failed to create azidentity credential: client secret cannot be empty\n")
    assert "AADSTS7000215: Invalid client secret" in refused(*SPN, "-t", TENANT, AZURE_CLIENT_SECRET="guessed")
    assert got(arm, *SPN, "-t", TENANT, AAD_SERVICE_PRINCIPAL_CLIENT_SECRET=TOKEN) == AUTOMATION.object_id


def test_does_not_reuse_tokens_of_another_simulator(enter: Enter) -> None:
    """kubelogin caches tokens by tenant and client. The API server would reject another simulator's."""
    for name in ("one", "another"):
        assert got(enter(name), *SPN, "-t", TENANT, AZURE_CLIENT_SECRET=TOKEN) == AUTOMATION.object_id


def test_workloadidentity_needs_a_token_of_a_trusted_issuer(arm: Arm, tmp_path: Path) -> None:
    assert arm.put(CLUSTER, cluster_body(oidcIssuerProfile={"enabled": True})).status_code == 201
    arm.done()
    ids = arm.put(IDENTITY, {"location": "eastus"}).json()["properties"]
    issuer = arm.get(CLUSTER)["properties"]["oidcIssuerProfile"]["issuerURL"]
    assert arm.put(CREDENTIAL, {"properties": TRUST | {"issuer": issuer}}).status_code == 201
    file = tmp_path / "assertion"
    login = [*GET, "workloadidentity", "--client-id", ids["clientId"], "--tenant-id", TENANT]
    assert "federated token file cannot be empty" in refused(*login)
    login += ["--federated-token-file", str(file)]
    file.write_text(assertion(issuer, "system:serviceaccount:ai:other"))
    assert "AADSTS700213: No matching federated identity" in refused(*login)
    file.write_text(assertion(issuer, TRUST["subject"], lasts=-60))
    assert "AADSTS700024: Client assertion is not within its valid time range." in refused(*login)
    file.write_text(assertion(issuer, TRUST["subject"]))
    assert got(arm, *login) == ids["principalId"]


def assertion(issuer: str, subject: str, lasts: int = 600) -> str:
    claims = {"iss": issuer, "sub": subject, "aud": TRUST["audiences"], "exp": int(time.time()) + lasts}
    return jwt.encode(claims, "", "none")


def test_azurecli_uses_the_login_of_az(arm: Arm) -> None:
    assert got(arm, *GET, "azurecli") == SUBSCRIPTION.object_id
    assert az.main(["login", "--username", GRACE.upn, "--password", TOKEN]) == 0
    assert got(arm, *GET, "azurecli") == GRACE.object_id
    assert az.main(["login", "--service-principal", "-u", AUTOMATION.client_id, "-p", TOKEN, "--tenant", TENANT]) == 0
    assert got(arm, *GET, "azurecli") == AUTOMATION.object_id
    assert "AADSTS90002" in refused(*GET, "azurecli", "--tenant-id", OTHER_TENANT)
    assert az.main(["logout"]) == 0
    assert got(arm, *GET, "azurecli") == SUBSCRIPTION.object_id
    words = "AzureCLICredential: ERROR: Tenant shouldn't be specified for managed identity"
    assert words in refused(*GET, "azurecli", "--tenant-id", TENANT)


def test_devicecode_is_not_possible(aks_kubeconfig: str) -> None:
    """AKS's default login needs a browser."""
    arguments = yaml.safe_load(aks_kubeconfig)["users"][0]["user"]["exec"]["args"]
    assert arguments[:3] == ["get-token", "--login", "devicecode"]
    error = refused(*arguments)
    assert error.startswith("Error: failed to authenticate: http call(https://login.microsoftonline.com/")
    assert "a login with a browser is not possible" in error


@pytest.mark.parametrize("login", ["azurecli", "workloadidentity", "msi", "spn"])
def test_the_program_converts_kubeconfigs_as_kubelogin_does(login: str, aks_kubeconfig: str, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(aks_kubeconfig)
    done = run("convert-kubeconfig", "--login", login, "--kubeconfig", str(file))
    assert done.returncode == 0, done.stderr
    assert command(file.read_text()) == command(kubeconfig.with_login(aks_kubeconfig, login))


def command(text: str) -> tuple[str, str, str, list[tuple[str, str]]]:
    plugin = yaml.safe_load(text)["users"][0]["user"]["exec"]
    first, *options = plugin["args"]
    return plugin["apiVersion"], plugin["command"], first, sorted(zip(options[::2], options[1::2], strict=True))


def test_the_kubernetes_plugin_uses_kubelogin(arm: Arm, aks_kubeconfig: str) -> None:
    config = exec_credentials.resolve(yaml.safe_load(kubeconfig.with_login(aks_kubeconfig, "msi")))
    assert arm.server.tokens.principal(config["users"][0]["user"]["token"]) == SUBSCRIPTION.object_id
    with pytest.raises(KubeconfigError, match='"kubelogin", which failed: Error: .*client secret cannot be empty'):
        exec_credentials.resolve(yaml.safe_load(kubeconfig.with_login(aks_kubeconfig, "spn")))


@pytest.mark.long
def test_works_with_the_real_azure_cli(arm: Arm, aks_kubeconfig: str, tmp_path: Path) -> None:
    """`az aks get-credentials` converts a login by device code (azure-cli 2.91.0, acs/custom.py)."""
    file, az_file = tmp_path / "kubeconfig", tmp_path / "az"
    cli = AzureCli(tmp_path, {**os.environ, "KUBECONFIG": str(file), "REQUESTS_CA_BUNDLE": arm.ca_file})
    cli.log_in()
    result = cli.run("aks get-credentials --resource-group rg --name aks")
    assert "Converted kubeconfig to use Azure CLI authentication." in result.errors
    assert command(file.read_text()) == command(kubeconfig.with_login(aks_kubeconfig, "azurecli"))
    installed = packages(paths.tool("azure-cli"))
    az_file.write_text(f'#!/bin/sh\nPYTHONPATH={installed} {sys.executable} -m azure.cli "$@"\n')
    az_file.chmod(0o755)
    own = {"AZURE_CONFIG_DIR": str(tmp_path / "azure"), "REQUESTS_CA_BUNDLE": arm.ca_file, "AZURE_CLI_TIMEOUT": "10m"}
    assert got(arm, *GET, "azurecli", PATH=f"{tmp_path}:{os.environ['PATH']}", **own) == SUBSCRIPTION.object_id


def test_builds_kubelogin_at_first_use(tmp_path: Path) -> None:
    """`make tools` builds it only for stacks without local accounts."""
    python = tmp_path / "python"
    made = 'printf "#!/bin/sh\\necho \\$XDG_CACHE_HOME \\"\\$@\\"\\n" >"$SIMULATOR_TOOLS/kubelogin"'
    python.write_text(f'#!/bin/sh\necho "$@"\n{made}\nchmod +x "$SIMULATOR_TOOLS/kubelogin"\n')
    python.chmod(0o755)
    own = {"SIMULATOR_TOOLS": str(tmp_path), "SIMULATOR_HOME": "/home", "SIMULATOR_PYTHON": str(python)}
    done = run("get-token", "a  b", **own)
    assert (done.stdout, done.stderr) == ("/home/kubelogin get-token a  b\n", "-m simulator.tools --only kubelogin\n")
    assert run("again", **own).stderr == ""
