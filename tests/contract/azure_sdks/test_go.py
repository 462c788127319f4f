"""Azure's SDK for Go on simulated Azure, with the azure-native plugin's versions and calls."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from simulator.azure.schema import schemas
from tests.support.arm import CLUSTER, SUBSCRIPTION, Arm
from tests.support.azure_resources import EXAMPLES, Body, shows

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(900)]  # the first build takes a minute on an idle machine
GROUPS = "Microsoft.Resources/resourceGroups"
POOLS = "Microsoft.ContainerService/managedClusters/agentPools"


class GoClient:
    """`go/main.go`, which finds the cloud and signs in by environment variables."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __call__(self, method: str, resource_type: str, path: str = "", body: Body | None = None) -> Body:
        version = schemas()[resource_type.lower()].api_versions[-1]
        step = {"method": method, "id": path or EXAMPLES[resource_type].id, "version": version}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(step | {"body": body}) + "\n")
        self._process.stdin.flush()
        answer: Body = json.loads(self._process.stdout.readline())
        return answer


@pytest.fixture(scope="session")
def executable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the client before simulated Azure starts, whose proxy blocks Go modules."""
    made = tmp_path_factory.mktemp("go") / "client"
    build = ["go", "build", "-trimpath", "-mod=readonly", "-o", str(made), "."]
    settings = {"CGO_ENABLED": "0", "GOWORK": "off"}
    subprocess.run(build, cwd=Path(__file__).with_name("go"), env=os.environ | settings, check=True)
    return made


@contextmanager
def started(executable: Path, **variables: str) -> Iterator[GoClient]:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([executable], env=os.environ | variables, **pipes) as process:
        yield GoClient(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == 0


@pytest.fixture(scope="module")
def client(arm: Arm, executable: Path) -> Iterator[GoClient]:
    with started(executable) as signed_in:
        yield signed_in


@pytest.mark.timeout(25)  # without Retry-After, the client polls every 30 seconds
@pytest.mark.parametrize("resource_type", sorted(EXAMPLES))
def test_create_read_update_delete(resource_type: str, client: GoClient) -> None:
    example = EXAMPLES[resource_type]
    assert client("GET", resource_type)["status"] == 404, "the plugin reads a resource before it creates it"
    made = client("PUT", resource_type, body=example.body)
    assert made["error"] == ""
    assert made["body"]["id"].lower() == example.id.lower()
    assert made["body"].get("properties", {}).get("provisioningState", "Succeeded") == "Succeeded"
    assert shows(client("GET", resource_type)["body"], example.body)
    if example.changed:
        assert shows(client("PUT", resource_type, body=example.changed)["body"], example.changed)
    assert client("DELETE", resource_type)["error"] == ""
    assert client("GET", resource_type)["status"] == 404
    assert client("DELETE", resource_type)["status"] in (204, 404), "a second deletion succeeds"


def test_a_failed_operation(arm: Arm, client: GoClient) -> None:
    arm.backend.failure = "no machines"
    try:
        made = client("PUT", POOLS, body=EXAMPLES[POOLS].body)
        assert "no machines" in made["error"]
    finally:
        arm.backend.failure = ""
        assert client("DELETE", POOLS)["error"] == ""


def test_errors_keep_their_codes(client: GoClient) -> None:
    away = EXAMPLES[POOLS].id.replace("/rg/", "/nowhere/")
    assert client("PUT", POOLS, away, EXAMPLES[POOLS].body)["code"] == "ResourceGroupNotFound"
    wrong = EXAMPLES[POOLS].body["properties"] | {"vmSize": "Standard_None"}
    assert client("PUT", POOLS, body={"properties": wrong})["status"] == 400


def test_functions_use_post(client: GoClient) -> None:
    found = client("POST", "Microsoft.ContainerService/managedClusters", f"{CLUSTER}/listClusterAdminCredential", {})
    assert [config["name"] for config in found["body"]["kubeconfigs"]] == ["clusterAdmin"]


def test_a_service_principal(arm: Arm, executable: Path) -> None:
    """A client secret precedes a managed identity, as for a stack with `clientId` and `clientSecret`."""
    who = {"ARM_CLIENT_ID": SUBSCRIPTION.client_id, "ARM_TENANT_ID": SUBSCRIPTION.tenant_id}
    with started(executable, **who, ARM_CLIENT_SECRET=arm.server.tokens.secret) as client:
        assert client("GET", GROUPS)["code"] == "ResourceGroupNotFound"
    with started(executable, **who, ARM_CLIENT_SECRET="guessed") as client:
        assert "AADSTS7000215" in client("GET", GROUPS)["error"]
