"""Bad input through the real CLI, at a platform that is up: refused with what mends it, and nothing is changed.

One story, in this order. The platform begins without Volcano, workloads and images in its registry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simulator.azure.registries import Registries
from simulator.command import images
from simulator.command.jobs import Workload
from tests.e2e.runs import all_pass, observed, run
from tests.support.sizes import H100
from tests.support.world import Stack, World, eventually

pytestmark = pytest.mark.simulator
PLATFORM = "refusals"
A100 = "Standard_ND96asr_v4"
GOOD = {
    "vmSku": H100,
    "nodeCount": "2",
    "pools": None,
    "registry": None,
    "operators": {"volcano": {"enabled": False}},
    "workloads": "",
    "workloadOptions": None,
}
"""Every setting that a mistake touches, as the platform was brought up with."""
WITH_A_JOB = {**GOOD, "operators": None, "workloads": "nccl-allreduce"}
MISTAKES: dict[str, tuple[dict[str, Any], str, str]] = {
    "a VM size that is unknown, under every workload": (
        {"vmSku": "Standard_ND96isr_H100", "workloads": "health-check,nccl-allreduce,metaseq,olmo,jupyterlab"},
        "vmSku is 'Standard_ND96isr_H100', an unknown VM size; near: Standard_ND96isr_H100_v5",
        f"pulumi config set -s refusals vmSku {H100}",
    ),
    "the label of NVMe scratch, set by hand": (
        {"vmSku": None, "nodeCount": None, "pools": {"gpu": {"vmSku": A100, "labels": {"local-nvme-scratch": "true"}}}},
        'pools.gpu.labels["local-nvme-scratch"] is a label that the program sets itself',
        """pulumi config rm -s refusals --path 'pools.gpu.labels["local-nvme-scratch"]'""",
    ),
    "a notebook server without a password": (
        {"workloads": "jupyterlab"},
        "workloadOptions.jupyterlab.password is not set, and without one anybody could log in",
        "pulumi config set -s refusals --secret --path workloadOptions.jupyterlab.password",
    ),
}
"""Their fixes have a plain value, a quoted path and a secret. The tables of bad input hold the other rules."""


@pytest.fixture(scope="module")
def platform(new_stack: Callable[..., Stack]) -> Stack:
    made = new_stack(PLATFORM, **GOOD)
    made.pushes_images = False
    made.up()
    return made


@pytest.fixture(scope="module")
def consumer(world: World, platform: Stack, tmp_path_factory: pytest.TempPathFactory) -> Stack:
    """The committed stack of the NCCL test, which is never brought up. Its platform is mistyped."""
    folder = tmp_path_factory.mktemp("lodger") / "project"
    return Stack.create(world, "lodger", folder, {"platformStack": "refusal"}, like="nccl-allreduce")


def state(stack: Stack) -> str:
    """Returns the file that the engine keeps the stack's state in."""
    return (stack.world.home / "state" / ".pulumi" / "stacks" / "ai-on-aks" / f"{stack.name}.json").read_text()


def refused(stack: Stack, text: str, *says: str) -> None:
    assert stack.returncode != 0, text
    assert "Traceback" not in text
    for part in says:
        assert part in text


@pytest.mark.parametrize(("config", "says", "fix"), MISTAKES.values(), ids=MISTAKES)
def test_a_preview_refuses(platform: Stack, config: dict[str, Any], says: str, fix: str) -> None:
    before = state(platform)
    platform.set(**{**GOOD, "operators": None, **config})
    text = platform.pulumi("preview", check=False)
    platform.set(**GOOD)
    refused(platform, text, "in the settings of stack refusals; nothing was changed", says, f"fix:     {fix}\n")
    assert state(platform) == before


def test_a_preview_refuses_what_azure_has_no_room_for(platform: Stack) -> None:
    before = state(platform)
    platform.set(nodeCount="11")
    text = platform.pulumi("preview", check=False)
    platform.set(**GOOD)
    needed = f"864 vCPUs of quota standardNDSH100v5Family are needed in eastus (pool gpu: 9 more nodes of {H100})"
    refused(platform, text, needed, "pulumi config set -s refusals nodeCount 10", "Nothing was changed.")
    assert state(platform) == before


def test_a_platform_that_is_not_there(consumer: Stack) -> None:
    text = consumer.pulumi("preview", check=False)
    refused(consumer, text, "platformStack is 'refusal', and its outputs cannot be read: unknown stack")
    assert "pulumi stack ls shows the names; bring the platform up first, with pulumi up -s refusal" in text


def test_a_platform_without_the_operator_that_a_workload_needs(consumer: Stack) -> None:
    consumer.set(platformStack=PLATFORM)
    text = consumer.pulumi("preview", check=False)
    what = "operators.volcano.enabled of stack refusals is false, but workload nccl-allreduce needs it as its scheduler"
    mend = "pulumi config set -s refusals --path operators.volcano.enabled true && pulumi up -s refusals"
    refused(consumer, text, what, f"fix:     {mend}\n")


@pytest.mark.long
def test_images_that_nobody_has_pushed(platform: Stack, world: World) -> None:
    """`up` succeeds, the job says what it waits for, and it starts by itself."""
    platform.set(**WITH_A_JOB)
    platform.up()
    registry = platform.outputs()["registry"]

    def stuck() -> Workload | None:
        found = observed(platform, platform)["nccl-allreduce"]
        return found if found.stuck else None

    why = eventually(stuck, "the job says what it waits for").complaint(platform.name)
    assert f"its registry does not have the image {registry}/nccl-test:" in " ".join(why.split())
    assert "    do: make images\n" in why
    pushed = f"do: make images REGISTRY={registry} # on the simulator: make images"
    assert pushed in platform.why("nccl-allreduce")
    images.push_all(Registries(world.home / "registries"))
    all_pass(platform, platform)


@pytest.mark.long
def test_a_registry_s_name_that_somebody_else_has(platform: Stack) -> None:
    """ARM alone knows that: the registry that is there stays, and so do the jobs that have their images from it."""
    platform.set(**WITH_A_JOB)
    platform.up()
    before = run(platform, "nccl-allreduce")
    platform.set(registry={"name": "contoso"})
    text = platform.up(check=False)
    refused(platform, text, 'Code="AlreadyInUse"', "The registry DNS name contoso.azurecr.io is already in use.")
    assert run(platform, "nccl-allreduce") == before
    platform.set(registry=None)
    assert "unchanged" in platform.up("--expect-no-changes")
