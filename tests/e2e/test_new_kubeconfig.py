from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.world import Stack

pytestmark = [pytest.mark.simulator, pytest.mark.long]
CLUSTER = "azure-native:containerservice:ManagedCluster cluster"
PROVIDER = "pulumi:providers:kubernetes kubernetes"
ROLE = "azure-native:authorization:RoleAssignment deployer-cluster-admin"
RENEWED = """
import yaml
from components.access import kubeconfig

decode = kubeconfig.decode


def renewed(value):
    config = yaml.safe_load(decode(value))
    config["clusters"][0]["cluster"]["disable-compression"] = True
    config["clusters"][0]["name"] = config["contexts"][0]["context"]["cluster"] = "renewed"
    return yaml.safe_dump(config)


kubeconfig.decode = renewed
"""


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    made = new_stack("kubeconfig", nodeCount=0, workloads="")
    made.up()
    return made


def planned(stack: Stack) -> dict[str, str]:
    return {name: step["op"] for name, step in stack.preview_steps().items() if step["op"] != "same"}


def test_other_entries_of_a_kubeconfig_update_only_the_provider(stack: Stack) -> None:
    """Emulates `az aks rotate-certs`, or a proxy."""
    stack.alter(RENEWED)
    assert planned(stack) == {PROVIDER: "update"}
    assert stack.steps() == {PROVIDER: "update"}
    stack.alter("")


def test_a_cluster_without_local_accounts_keeps_its_objects_and_releases(stack: Stack) -> None:
    stack.set(cluster={"localAccounts": False})
    expected = {CLUSTER: "update", PROVIDER: "update", ROLE: "create"}
    assert planned(stack) == expected
    assert stack.steps() == expected
    assert "unchanged" in stack.up("--expect-no-changes")


def test_local_accounts_can_be_enabled_again(stack: Stack) -> None:
    """The certificate is unknown before the update, so the preview uses the login and keeps the provider."""
    stack.set(cluster={"localAccounts": True})
    expected = {CLUSTER: "update", ROLE: "delete"}
    assert planned(stack) == expected
    assert stack.steps() == expected | {PROVIDER: "update"}
    assert "unchanged" in stack.up("--expect-no-changes")
