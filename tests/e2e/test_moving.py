"""A stack that is up is not moved to another region or resource group: both are told, and the ways out work.

One story, in the order of the file.
"""

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
    "cluster ai-on-aks-moving: what runs there, and what that keeps on persistent volumes",
    "registry aionaksmoving",
    "storage account aionaksmoving",
)
CLUSTER = "resourceGroups/ai-on-aks-moving/providers/Microsoft.ContainerService/managedClusters/ai-on-aks-moving"


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Iterator[Stack]:
    pools = {"gpu": {"vmSku": "Standard_NC24ads_A100_v4", "count": 1}}
    made = new_stack("moving", workloads=None, vmSku=None, nodeCount=None, pools=pools, storage=DATA)
    yield made
    unprotect(made)  # its data is to go after the tests


def unprotect(stack: Stack) -> None:
    stack.pulumi("state", "unprotect", "--all", "--yes")


def refused(stack: Stack, *command: str) -> str:
    """What the command says of settings that move the stack."""
    said = stack.pulumi(*command, check=False)
    assert stack.returncode != 0, said
    assert "Traceback" not in said
    assert "Nothing was changed." in said
    assert "resource-group" not in said  # no step of the engine's
    for each in LOST:
        assert each in said
    return said


def ways(said: str) -> list[str]:
    """The commands in what was said: one that keeps the stack, one that builds another beside it, and so on."""
    return re.findall(r"^ +(pulumi .*)$", said, re.MULTILINE)


def paste(stack: Stack, line: str) -> str:
    """What a line of commands prints in the stack's folder."""
    return stack.world.run(["bash", "-c", line], cwd=stack.folder).stdout


def test_another_region_is_refused(stack: Stack) -> None:
    stack.up()
    stack.pulumi("config", "set", REGION, "westeurope")
    said = refused(stack, "preview")
    assert f"{REGION} is westeurope, but the stack is in eastus" in said
    kept, beside, *_ = ways(said)
    previewed = paste(stack, beside.replace("pulumi up", "pulumi preview --diff"))
    assert re.search(r'location +: "westeurope"', previewed)
    paste(stack, "pulumi stack rm moving-2 --yes")
    paste(stack, kept)


def test_another_resource_group_is_refused_and_an_up_that_failed_forgets_nothing(stack: Stack) -> None:
    stack.set(cluster=GROUP)
    refused(stack, "up", "--yes", "--skip-preview")
    said = refused(stack, "up", "--yes", "--skip-preview")
    assert "the resource group is ai-on-aks-moving, and would be elsewhere" in said
    paste(stack, ways(said)[0])
    stack.up("--expect-no-changes")


def test_protected_data_stays_also_when_the_stack_is_to_be_taken_down(stack: Stack) -> None:
    stack.pulumi("config", "set", REGION, "westeurope")
    assert "`pulumi destroy` refuses to, until `pulumi state unprotect -s moving --all`" in refused(stack, "preview")
    said = stack.pulumi("destroy", "--yes", check=False)
    assert stack.returncode != 0
    assert "container-data" in said
    assert "because it is protected" in said
    assert stack.world.arm("GET", f"{CLUSTER}?api-version=2025-09-01")["location"] == "eastus"


def test_taken_down_it_is_built_anew_elsewhere(stack: Stack) -> None:
    unprotect(stack)
    stack.pulumi("destroy", "--yes")
    stack.up()
    assert stack.world.arm("GET", f"{CLUSTER}?api-version=2025-09-01")["location"] == "westeurope"
