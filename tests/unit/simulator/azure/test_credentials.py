from __future__ import annotations

import base64
from typing import Any

import pytest
import yaml

from tests.support.arm import CLUSTER, GROUP, SUBSCRIPTION, Arm, cluster_body
from tests.support.networks import make

REFUSED = "Getting static credential is not allowed because this cluster is set to disable local accounts."


def _cluster(arm: Arm, *, entra: bool, local: bool) -> None:
    profile = {"managed": True, "enableAzureRBAC": True} if entra else None
    arm.put(GROUP, {"location": "eastus"})
    make(arm, CLUSTER, cluster_body(aadProfile=profile, disableLocalAccounts=not local))


def _user(arm: Arm, action: str, **query: str) -> tuple[str, dict[str, Any]] | str:
    answer = arm.call("POST", f"{CLUSTER}/{action}", {}, **query)
    if answer.status_code == 400:
        assert answer.json()["error"]["code"] == "BadRequest"
        return str(answer.json()["error"]["message"])
    kubeconfig = yaml.safe_load(base64.b64decode(answer.json()["kubeconfigs"][0]["value"]))
    assert kubeconfig["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"
    return kubeconfig["current-context"], kubeconfig["users"][0]["user"]


@pytest.mark.parametrize(
    ("entra", "action", "context"),
    [
        (True, "listClusterAdminCredential", "aks-admin"),
        (False, "listClusterAdminCredential", "aks-admin"),
        (False, "listClusterUserCredential", "aks"),
    ],
)
def test_returns_a_certificate_of_a_local_account(arm: Arm, entra: bool, action: str, context: str) -> None:
    _cluster(arm, entra=entra, local=True)
    assert _user(arm, action) == (context, {"client-certificate-data": "Q0VSVA==", "client-key-data": "S0VZ"})


def test_rejects_admin_credentials_without_local_accounts(arm: Arm) -> None:
    _cluster(arm, entra=True, local=False)
    found = _user(arm, "listClusterAdminCredential")
    assert isinstance(found, str)
    assert found.startswith(REFUSED)


@pytest.mark.parametrize("local", [True, False])
def test_user_credentials_use_kubelogin_with_entra(arm: Arm, local: bool) -> None:
    _cluster(arm, entra=True, local=local)
    found = _user(arm, "listClusterUserCredential", format="exec")
    assert isinstance(found, tuple)
    plugin = found[1]["exec"]
    assert (found[0], plugin["command"]) == ("aks", "kubelogin")
    assert plugin["args"][:3] == ["get-token", "--login", "devicecode"]
    assert plugin["args"][plugin["args"].index("--tenant-id") + 1] == SUBSCRIPTION.tenant_id


def test_rejects_an_unknown_format(arm: Arm) -> None:
    _cluster(arm, entra=True, local=True)
    answer = arm.call("POST", f"{CLUSTER}/listClusterUserCredential", {}, format="yaml")
    assert arm.refusal(answer)[:2] == (400, "InvalidParameter")


def test_rejects_credentials_of_a_cluster_in_creation(arm: Arm) -> None:
    arm.backend.gate.clear()
    arm.put(GROUP, {"location": "eastus"})
    arm.put(CLUSTER, cluster_body())
    answer = arm.call("POST", f"{CLUSTER}/listClusterAdminCredential", {})
    assert arm.refusal(answer)[:2] == (409, "OperationNotAllowed")
