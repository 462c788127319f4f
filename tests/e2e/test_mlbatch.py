"""`Pulumi.mlbatch.yaml` from nothing, and the demonstration on it. In the file's order."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from k8s.objects import condition
from simulator.host.paths import ROOT
from tests.support.world import Stack, World, eventually, gpu_nodes

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
NAME = "mlbatch"


@pytest.fixture(scope="module")
def stack(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    made = Stack.create(world, NAME, tmp_path_factory.mktemp(NAME) / "project", {}, like=NAME)
    made.up()
    yield made
    made.destroy()


def test_the_stack_is_up_with_a_queue_for_each_team(stack: Stack) -> None:
    stack.up("--expect-no-changes")
    eventually(lambda: len(gpu_nodes(stack.kube)) == 3, "three nodes")
    for name in ("blue", "red", "slack"):
        queue = stack.kube.get("kueue.x-k8s.io/v1beta2", "ClusterQueue", f"{name}-cluster-queue")
        assert condition(queue, "Active")["status"] == "True"


def test_the_demonstration_comes_out_as_it_should_and_leaves_nothing(stack: Stack) -> None:
    def offered() -> list[str]:
        return [node["status"]["allocatable"].get("nvidia.com/gpu", "0") for node in gpu_nodes(stack.kube)]

    eventually(lambda: offered() == ["8"] * 3, "the nodes offer their GPUs", 300)
    environment = {**stack.environment, "KUBECONFIG": str(stack.world.kubeconfig(NAME))}
    picture = stack.folder / "gpu-use.svg"
    command = [sys.executable, "-m", "demos.mlbatch", "--picture", str(picture)]
    told = stack.world.run(command, cwd=ROOT, environment=environment).stdout
    assert ">blue</text>" in picture.read_text()
    assert told.rstrip().endswith("all 6 steps came out as they should"), told
    for team in ("blue", "red"):
        assert stack.kube.list("v1", "Pod", team) == []
    assert not [node for node in gpu_nodes(stack.kube) if "ai-on-aks/gpu-health" in node["metadata"]["labels"]]
