from __future__ import annotations

from collections.abc import Callable

import pytest

from simulator.azure.registries import Registries
from simulator.command import images
from simulator.command.jobs import Workload
from tests.e2e.runs import check_all_pass, observed, run
from tests.support.sizes import H100
from tests.support.world import Stack, World, eventually

pytestmark = pytest.mark.simulator
PLATFORM = "refusals"
GOOD = {"vmSku": H100, "nodeCount": "2", "operators": {"volcano": {"enabled": False}}, "workloads": ""}
"""Settings that the tests change, with the platform's values."""
WITH_A_JOB = {**GOOD, "operators": None, "workloads": "nccl-allreduce"}


@pytest.fixture(scope="module")
def platform(new_stack: Callable[..., Stack]) -> Stack:
    made = new_stack(PLATFORM, **GOOD)
    made.pushes_images = False
    made.up()
    return made


def state(stack: Stack) -> str:
    return (stack.world.home / "state" / ".pulumi" / "stacks" / "ai-on-aks" / f"{stack.name}.json").read_text()


def check_failed(stack: Stack, text: str, *parts: str) -> None:
    assert stack.returncode != 0, text
    assert "Traceback" not in text
    for part in parts:
        assert part in text


def test_a_preview_rejects_a_wrong_setting(platform: Stack) -> None:
    """The tables of bad input have all rules, and tests/unit/config/test_fixes.py runs all fixes."""
    before = state(platform)
    workloads = "health-check,nccl-allreduce,metaseq,olmo,jupyterlab"
    platform.set(vmSku="Standard_ND96isr_H100", operators=None, workloads=workloads)
    text = platform.pulumi("preview", check=False)
    platform.set(**GOOD)
    problem = "vmSku is 'Standard_ND96isr_H100', an unknown VM size; similar: Standard_ND96isr_H100_v5"
    fix = f"fix:     pulumi config set -s refusals vmSku {H100}\n"
    check_failed(platform, text, "in the settings of stack refusals; nothing was changed", problem, fix)
    assert state(platform) == before


def test_a_preview_rejects_more_nodes_than_the_quota_allows(platform: Stack) -> None:
    before = state(platform)
    platform.set(nodeCount="11")
    text = platform.pulumi("preview", check=False)
    platform.set(**GOOD)
    needed = f"864 vCPUs of quota standardNDSH100v5Family are needed in eastus (pool gpu: 9 more nodes of {H100})"
    check_failed(platform, text, needed, "pulumi config set -s refusals nodeCount 10", "Nothing was changed.")
    assert state(platform) == before


def test_rejects_a_platform_that_does_not_exist(new_stack: Callable[..., Stack]) -> None:
    consumer = new_stack("consumer", "nccl-allreduce", platformStack="refusal")
    text = consumer.pulumi("preview", check=False)
    check_failed(consumer, text, "platformStack is 'refusal', but its outputs cannot be read: unknown stack")
    assert "`pulumi stack ls` lists the stacks; deploy the platform first: pulumi up -s refusal" in text


@pytest.mark.long
def test_a_job_waits_for_its_image_to_be_pushed(platform: Stack, world: World) -> None:
    platform.set(**WITH_A_JOB)
    platform.up()
    registry = platform.outputs()["registry"]

    def stuck() -> Workload | None:
        found = observed(platform, platform)["nccl-allreduce"]
        return found if found.stuck else None

    why = eventually(stuck, "the missing image is reported").complaint(platform.name)
    assert f"its registry does not have the image {registry}/nccl-test:" in " ".join(why.split())
    assert "    do: make images\n" in why
    pushed = f"do: make images REGISTRY={registry} # on the simulator: make images"
    assert pushed in platform.diagnose("nccl-allreduce")
    images.push_all(Registries(world.home / "registries"))
    check_all_pass(platform, platform)


@pytest.mark.long
def test_a_registry_name_that_another_user_has_fails_in_azure_and_keeps_the_registry(platform: Stack) -> None:
    platform.set(**WITH_A_JOB)
    platform.up()
    before = run(platform, "nccl-allreduce")
    platform.set(registry={"name": "contoso"})
    text = platform.up(check=False)
    check_failed(platform, text, 'Code="AlreadyInUse"', "The registry DNS name contoso.azurecr.io is already in use.")
    assert run(platform, "nccl-allreduce") == before
    platform.set(registry=None)
    assert "unchanged" in platform.up("--expect-no-changes")
