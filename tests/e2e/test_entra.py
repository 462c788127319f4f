from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from simulator.azure import subscription, trust
from simulator.azure.store import records
from simulator.azure.tokens import AKS, Tokens
from tests.support.world import Stack, eventually, log, wait_for_end

pytestmark = pytest.mark.simulator
KNOWN = subscription.load()
GRACE, AUTOMATION = (KNOWN.directory[name] for name in ("grace", "automation"))
OTHER_TENANT = "00000000-0000-4000-8000-0000000000ff"
READER = "7f6c6a51-bcf8-42ba-9220-52d62157d7db"
OF_AUTOMATION = {"AAD_LOGIN_METHOD": "spn", "AZURE_CLIENT_ID": AUTOMATION.client_id}
NO_ACCESS = "User does not have access to the resource in Azure. Update role assignment to allow access."


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    made = new_stack("entra", cluster={"localAccounts": False, "adminGroupObjectIds": list(GRACE.groups)})
    made.up()
    return made


def kubectl(stack: Stack, *arguments: str, **variables: str) -> str:
    shown = ["env", *(f"{name}={value}" for name, value in variables.items()), "kubectl", *arguments]
    context = f"--context=ai-on-aks-{stack.name}+ai-on-aks-{stack.name}"
    answer = stack.world.run([*shown, context], check=False)
    return answer.stdout + answer.stderr


def as_automation(stack: Stack, *arguments: str) -> str:
    """Runs kubectl as the service principal; all simulated principals have the same secret."""
    secret = stack.world.environment["IDENTITY_HEADER"]
    return kubectl(stack, *arguments, **OF_AUTOMATION, AZURE_CLIENT_SECRET=secret, AZURE_TENANT_ID=KNOWN.tenant_id)


def test_the_deployer_creates_everything_with_kubelogin(stack: Stack) -> None:
    assert wait_for_end(stack.kube) == "Completed"
    assert "VERDICT: PASS" in log(stack.kube)
    assert KNOWN.object_id in kubectl(stack, "auth", "whoami")
    assert "nccl-allreduce-mpimaster-0" in kubectl(stack, "get", "pods", "-n", "ai")


def test_an_identity_needs_a_role(stack: Stack) -> None:
    assert AUTOMATION.object_id in as_automation(stack, "auth", "whoami")
    refused = f'pods is forbidden: User "{AUTOMATION.object_id}" cannot list resource "pods" in API group "" in the '
    assert f'{refused}namespace "ai": {NO_ACCESS}' in as_automation(stack, "get", "pods", "-n", "ai")
    name = f"ai-on-aks-{stack.name}"
    namespace = f"resourceGroups/{name}/providers/Microsoft.ContainerService/managedClusters/{name}/namespaces/ai"
    role = f"/subscriptions/{KNOWN.subscription_id}/providers/Microsoft.Authorization/roleDefinitions/{READER}"
    stack.world.arm(
        "PUT",
        f"{namespace}/providers/Microsoft.Authorization/roleAssignments/00000000-0000-0000-0000-0000000000a1"
        "?api-version=2022-04-01",
        {"properties": {"principalId": AUTOMATION.object_id, "roleDefinitionId": role}},
    )
    assert "nccl-allreduce-mpimaster-0" in as_automation(stack, "get", "pods", "-n", "ai")
    assert NO_ACCESS in as_automation(stack, "get", "pods", "-n", "kube-system")
    assert NO_ACCESS in as_automation(stack, "delete", "pods", "--all", "-n", "ai")


def test_a_member_of_an_administrators_group_needs_no_role(stack: Stack) -> None:
    secret = stack.world.environment["IDENTITY_HEADER"]
    stack.world.run(["az", "login", "--username", GRACE.upn, "--password", secret])
    try:
        assert GRACE.upn in kubectl(stack, "auth", "whoami")
        assert kubectl(stack, "auth", "can-i", "*", "*").strip() == "yes"
    finally:
        stack.world.run(["az", "logout"])


def test_akss_kubeconfig_works_after_kubelogin_has_converted_it(stack: Stack, tmp_path: Path) -> None:
    """The kubeconfig of `az aks get-credentials` asks for a browser login."""
    name, file = f"ai-on-aks-{stack.name}", tmp_path / "kubeconfig"
    cluster = f"resourceGroups/{name}/providers/Microsoft.ContainerService/managedClusters/{name}"
    answer = stack.world.arm("POST", f"{cluster}/listClusterUserCredential?api-version=2025-09-01")
    file.write_bytes(base64.b64decode(answer["kubeconfigs"][0]["value"]))
    whoami = ["kubectl", "--kubeconfig", str(file), "auth", "whoami"]
    assert "failed to authenticate: http call(https://login.micro" in stack.world.run(whoami, check=False).stderr
    stack.world.run(["kubelogin", "convert-kubeconfig", "-l", "azurecli", "--kubeconfig", str(file)])
    assert KNOWN.object_id in stack.world.run(whoami).stdout


def test_the_api_server_rejects_an_expired_token(stack: Stack, tmp_path: Path) -> None:
    tokens = Tokens("", trust.token_key(stack.world.home), KNOWN, "")
    for age, words in ((7200, "You must be logged in to the server (Unauthorized)"), (0, KNOWN.object_id)):
        token, ends = tokens.issue(AKS, now=time.time() - age)
        az = tmp_path / "az"
        az.write_text(f"#!/bin/sh\necho '{json.dumps({'accessToken': token, 'expires_on': ends})}'\n")
        az.chmod(0o755)
        path = f"{tmp_path}:{stack.world.environment['PATH']}"
        assert words in kubectl(stack, "auth", "whoami", PATH=path)


@pytest.mark.long
def test_a_first_update_retries_until_the_deployers_role_takes_effect(new_stack: Callable[..., Stack]) -> None:
    late = new_stack("entra-late", cluster={"localAccounts": False}, workloads=None)
    late.world.simulator("fault", "roles")
    with ThreadPoolExecutor(1) as others:
        healed = others.submit(_heal_once_assigned, late)
        late.up()
    made = late.kube.get("v1", "Namespace", "ai")["metadata"]["creationTimestamp"]
    assert datetime.fromisoformat(made) >= healed.result()


def _heal_once_assigned(stack: Stack) -> datetime:
    """Lets roles take effect ten seconds after the deployer's role exists. Returns the time."""
    role = f"managedClusters/ai-on-aks-{stack.name}/providers/Microsoft.Authorization/roleAssignments".lower()
    eventually(lambda: any(role in made.id.key for made in records(stack.world.home / "azure")), "the role exists")
    time.sleep(10)
    now = datetime.now(UTC).replace(microsecond=0)
    stack.world.simulator("heal", "roles")
    return now
