"""Simulated kubelogin and az: whose token they get, and what they refuse, as the real ones do."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from simulator.command import environment
from simulator.plugins.logins import az, kubelogin
from tests.support.arm import CLUSTER, SUBSCRIPTION, TOKEN, Arm, cluster_body
from tests.support.blob_account import CREDENTIAL, IDENTITY
from tests.support.mocked_azure import LOGIN_OPTIONS, SERVER_APP

GRACE, AUTOMATION = (SUBSCRIPTION.directory[name] for name in ("grace", "automation"))
TENANT = SUBSCRIPTION.tenant_id
GET = ["get-token", "--server-id", SERVER_APP, "--login"]
TRUST: dict[str, Any] = {"issuer": "", "subject": "system:serviceaccount:ai:blobs", "audiences": ["api://x"]}
Printed = pytest.CaptureFixture[str]


def got(arm: Arm, printed: Printed, *arguments: str) -> str:
    """The object id of whom kubelogin got a token for."""
    assert kubelogin.main(arguments) == 0, printed.readouterr().err
    credential = json.loads(printed.readouterr().out)
    claims = arm.server.tokens.claims(credential["status"]["token"]) or {}
    assert (claims["aud"], credential["kind"]) == (SERVER_APP, "ExecCredential")
    oid: str = claims["oid"]
    return oid


def refused(printed: Printed, *arguments: str) -> str:
    assert kubelogin.main(arguments) == 1
    return printed.readouterr().err


@pytest.fixture
def az_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([str(environment.LOGINS), os.environ["PATH"]]))


def test_az_stops_and_starts_a_cluster(
    arm: Arm, capsys: Printed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))
    arm.put(CLUSTER, cluster_body())
    arm.done()
    for action, state in (("stop", "Stopped"), ("start", "Running")):
        assert az.main(["aks", action, "-g", "rg", "--name", "aks"]) == 0, capsys.readouterr().err
        assert arm.get(CLUSTER)["properties"]["powerState"]["code"] == state
        assert az.main(["aks", "show", "-g", "rg", "-n", "aks", "--query", "powerState.code"]) == 0
        assert json.loads(capsys.readouterr().out) == state
    assert az.main(["aks", "stop", "-g", "rg", "-n", "other"]) == 1
    assert "ERROR: The Resource" in capsys.readouterr().err


def test_a_managed_identity_is_who_deploys_or_the_one_that_the_environment_names(
    arm: Arm, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert got(arm, capsys, *GET, "msi") == SUBSCRIPTION.object_id
    ids = arm.put(IDENTITY, {"location": "eastus"}).json()["properties"]
    monkeypatch.setenv("AZURE_CLIENT_ID", ids["clientId"])
    assert got(arm, capsys, *GET, "msi") == ids["principalId"]
    monkeypatch.setenv("AZURE_CLIENT_ID", AUTOMATION.client_id)
    assert "ManagedIdentityCredential authentication failed. No User Assigned" in refused(capsys, *GET, "msi")


def test_a_service_principal_has_a_secret(arm: Arm, capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tenant is in what AKS writes, as its client id is, before which comes that of the environment."""
    spn = ["get-token", *LOGIN_OPTIONS, "--login", "spn"]
    assert refused(capsys, *spn) == "Error: failed to create azidentity credential: client secret cannot be empty\n"
    monkeypatch.setenv("AAD_SERVICE_PRINCIPAL_CLIENT_ID", AUTOMATION.client_id)
    monkeypatch.setenv("AAD_SERVICE_PRINCIPAL_CLIENT_SECRET", TOKEN)
    assert got(arm, capsys, *spn, "--tenant-id", TENANT) == AUTOMATION.object_id
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "guessed")
    assert "AADSTS7000215: Invalid client secret" in refused(capsys, *spn, "--tenant-id", TENANT)
    assert "tenant ID cannot be empty" in refused(capsys, *GET, "spn")


def test_a_workload_brings_a_token_of_an_issuer_that_its_identity_trusts(
    arm: Arm, capsys: Printed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert arm.put(CLUSTER, cluster_body(oidcIssuerProfile={"enabled": True})).status_code == 201
    arm.done()
    ids = arm.put(IDENTITY, {"location": "eastus"}).json()["properties"]
    issuer = arm.get(CLUSTER)["properties"]["oidcIssuerProfile"]["issuerURL"]
    assert arm.put(CREDENTIAL, {"properties": TRUST | {"issuer": issuer}}).status_code == 201
    file = tmp_path / "assertion"
    monkeypatch.setenv("AZURE_CLIENT_ID", ids["clientId"])
    monkeypatch.setenv("AZURE_TENANT_ID", TENANT)
    assert "federated token file cannot be empty" in refused(capsys, *GET, "workloadidentity")
    monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", str(file))
    file.write_text(assertion(issuer, "system:serviceaccount:ai:other"))
    assert "AADSTS700213: No matching federated identity" in refused(capsys, *GET, "workloadidentity")
    file.write_text(assertion(issuer, TRUST["subject"]))
    assert got(arm, capsys, *GET, "workloadidentity") == ids["principalId"]


def assertion(issuer: str, subject: Any) -> str:
    claims = json.dumps({"iss": issuer, "sub": subject, "aud": TRUST["audiences"]})
    return f"e30.{base64.urlsafe_b64encode(claims.encode()).rstrip(b'=').decode()}.signature"


@pytest.mark.usefixtures("az_on_path")
def test_azurecli_is_whoever_az_has_logged_in_and_before_that_who_deploys(arm: Arm, capsys: Printed) -> None:
    assert got(arm, capsys, *GET, "azurecli") == SUBSCRIPTION.object_id
    assert az.main(["login", "--username", GRACE.upn, "--password", TOKEN]) == 0
    assert got(arm, capsys, *GET, "azurecli") == GRACE.object_id
    assert az.main(["login", "--service-principal", "-u", AUTOMATION.client_id, "-p", TOKEN, "--tenant", TENANT]) == 0
    assert got(arm, capsys, *GET, "azurecli") == AUTOMATION.object_id
    assert az.main(["logout"]) == 0
    assert got(arm, capsys, *GET, "azurecli") == SUBSCRIPTION.object_id
    words = "AzureCLICredential: ERROR: Tenant shouldn't be specified for managed identity account"
    assert words in refused(capsys, *GET, "azurecli", "--tenant-id", TENANT)


def test_azurecli_needs_az(arm: Arm, capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert "Azure CLI not found on path" in refused(capsys, *GET, "azurecli")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["get-token", "--login", "msi"], "server-id is required"),
        (["get-token", *LOGIN_OPTIONS], "knows no login 'devicecode', only azurecli, workloadidentity, spn, msi"),
        ([*GET, "msi", "--surprise"], "unrecognized arguments: --surprise"),
        (["convert-kubeconfig"], "invalid choice: 'convert-kubeconfig'"),
    ],
)
def test_what_kubelogin_refuses(arguments: list[str], words: str, capsys: Printed) -> None:
    assert words in refused(capsys, *arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["login"], "nobody can log in by a browser here"),
        (["login", "--username", GRACE.upn, "--password", "guessed"], "AADSTS50126"),
        (["login", "--identity", "--client-id", "nobody"], "No User Assigned or Delegated Managed Identity"),
        (["login", "--service-principal", "-u", "x", "-p", "y"], "--tenant TENANT"),
        (["aks", "list"], "'aks list' is not simulated"),
    ],
)
def test_what_az_refuses(arguments: list[str], words: str, arm: Arm, capsys: Printed) -> None:
    """Nobody is logged in by a login that failed."""
    assert az.main(arguments) == 1
    assert words in capsys.readouterr().err
    assert not list(Path(os.environ["AZURE_CONFIG_DIR"]).glob("*"))


def test_both_are_on_path_in_the_simulator_s_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))
    monkeypatch.setenv("AAD_LOGIN_METHOD", "spn")
    assert str(environment.LOGINS) in environment.settings()["PATH"].split(os.pathsep)
    assert "AAD_LOGIN_METHOD" in environment.unset()
    assert all(os.access(environment.LOGINS / name, os.X_OK) for name in ("az", "kubelogin"))
