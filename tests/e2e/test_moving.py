from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.world import Stack

pytestmark = [pytest.mark.simulator, pytest.mark.long]
DATA: dict[str, Any] = {"containers": {"data": {}}}
REGION = "azure-native:location"
GROUP = {"localAccounts": True, "resourceGroup": "elsewhere"}
LOST = (
    "cluster ai-on-aks-moving: its workloads, and their data on persistent volumes",
    "registry aionaksmoving",
    "storage account aionaksmoving",
)
CLUSTER = "resourceGroups/ai-on-aks-moving/providers/Microsoft.ContainerService/managedClusters/ai-on-aks-moving"


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Iterator[Stack]:
    pools = {"gpu": {"vmSku": "Standard_NC24ads_A100_v4", "count": 1}}
    made = new_stack("moving", workloads=None, vmSku=None, nodeCount=None, pools=pools, storage=DATA)
    yield made
    unprotect(made)  # so that the data are deleted after the tests


def unprotect(stack: Stack) -> None:
    stack.pulumi("state", "unprotect", "--all", "--yes")


def check_rejected(stack: Stack, *command: str) -> str:
    output = stack.pulumi(*command, check=False)
    assert stack.returncode != 0, output
    assert "Traceback" not in output
    assert "Nothing was changed." in output
    assert "resource-group" not in output  # the engine executed no step
    for each in LOST:
        assert each in output
    return output


def commands(output: str) -> list[str]:
    """Returns an error's commands: the first keeps the stack, the second creates another."""
    return re.findall(r"^ +(pulumi .*)$", output, re.MULTILINE)


def paste(stack: Stack, line: str) -> str:
    return stack.world.run(["bash", "-c", line], cwd=stack.folder).stdout


def test_rejects_another_region(stack: Stack) -> None:
    stack.up()
    stack.pulumi("config", "set", REGION, "westeurope")
    output = check_rejected(stack, "preview")
    assert f"{REGION} is westeurope, but the stack is in eastus" in output
    keep, create_another, *_ = commands(output)
    previewed = paste(stack, create_another.replace("pulumi up", "pulumi preview --diff"))
    assert re.search(r'location +: "westeurope"', previewed)
    paste(stack, "pulumi stack rm moving-2 --yes")
    paste(stack, keep)


def test_rejects_another_resource_group_again_after_a_failed_up(stack: Stack) -> None:
    stack.set(cluster=GROUP)
    check_rejected(stack, "up", "--yes", "--skip-preview")
    output = check_rejected(stack, "up", "--yes", "--skip-preview")
    assert "the resource group is ai-on-aks-moving, and would be elsewhere" in output
    paste(stack, commands(output)[0])
    stack.up("--expect-no-changes")


def test_destroy_keeps_protected_data(stack: Stack) -> None:
    stack.pulumi("config", "set", REGION, "westeurope")
    unprotect_first = "Or destroy (which fails until you run `pulumi state unprotect -s moving --all`"
    assert unprotect_first in check_rejected(stack, "preview")
    output = stack.pulumi("destroy", "--yes", check=False)
    assert stack.returncode != 0
    assert "container-data" in output
    assert "because it is protected" in output
    assert stack.world.arm("GET", f"{CLUSTER}?api-version=2025-09-01")["location"] == "eastus"


def test_a_destroyed_stack_can_be_created_in_another_region(stack: Stack) -> None:
    unprotect(stack)
    stack.pulumi("destroy", "--yes")
    stack.up()
    assert stack.world.arm("GET", f"{CLUSTER}?api-version=2025-09-01")["location"] == "westeurope"
