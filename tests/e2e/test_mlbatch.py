from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from simulator.host.paths import ROOT
from tests.e2e.policies import offered_gpus
from tests.support.world import Stack, World, eventually, gpu_nodes

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
NAME = "mlbatch"


@pytest.fixture(scope="module")
def stack(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    made = Stack.create(world, NAME, tmp_path_factory.mktemp(NAME) / "project", {}, like=NAME)
    made.up()
    yield made
    made.destroy()


def test_the_demonstration_succeeds_and_leaves_nothing(stack: Stack) -> None:
    stack.up("--expect-no-changes")
    eventually(lambda: offered_gpus(stack) == [8] * 3, "the nodes offer their GPUs", 300)
    environment = {**stack.environment, "KUBECONFIG": str(stack.world.kubeconfig(NAME))}
    picture = stack.folder / "gpu-use.svg"
    command = [sys.executable, "-m", "demos.mlbatch", "--picture", str(picture)]
    output = stack.world.run(command, cwd=ROOT, environment=environment).stdout
    assert ">blue</text>" in picture.read_text()
    assert output.rstrip().endswith("all 6 steps had the expected result"), output
    for team in ("blue", "red"):
        assert stack.kube.list("v1", "Pod", team) == []
    assert not [node for node in gpu_nodes(stack.kube) if "ai-on-aks/gpu-health" in node["metadata"]["labels"]]
