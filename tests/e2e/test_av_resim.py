"""The stack of `Pulumi.av-resim.yaml`, in its two phases.

All commands run inside its private network.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s.objects import Object
from tests.e2e.batches import blobs, most_at_once, output_sizes, resim_json, results
from tests.e2e.runs import gpu_pod_nodes, wait_for_end
from tests.support.sizes import T4
from tests.support.world import Stack, World, eventually, gpu_nodes, log

pytestmark = [pytest.mark.simulator, pytest.mark.long]
NAME = "resimulation"
SIZE = 16 * 2**20
"""The default size of an output."""


@pytest.fixture(scope="module")
def stack(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    made = Stack.create(world, NAME, tmp_path_factory.mktemp(NAME) / "project", {}, like="av-resim")
    assert "This machine is outside the network that the stack creates" in made.up()
    made.inside = f"ai-on-aks-{NAME}"
    made.up()
    yield made
    made.inside = ""  # the network goes with the rest
    made.discard()


def of_pool(stack: Stack, key: str) -> list[Object]:
    arm = stack.outputs()["pools"][key]
    return [node for node in gpu_nodes(stack.kube) if node["metadata"]["name"].startswith(f"aks-{arm}-")]


def grown(stack: Stack, key: str) -> list[str]:
    arm = stack.outputs()["pools"][key]
    events = [event for event in stack.kube.list("v1", "Event") if event["reason"] == "ScaledUpGroup"]
    return [event["message"] for event in events if f"group aks-{arm}-" in event["message"]]


def test_its_jobs_complete(stack: Stack) -> None:
    found = wait_for_end(stack, stack)
    assert {name: each.phase for name, each in found.items()} == {
        "gpu-batch": "Complete",
        "metaseq": "Completed",
        "resim": "Complete",
    }


def test_at_most_two_pods_share_the_gpu_of_a_node(stack: Stack) -> None:
    assert stack.kube.get("batch/v1", "Job", "gpu-batch", "ai")["status"]["succeeded"] == 10
    spans = [(each["node"], each["started"], each["ended"]) for each in results(stack, "resim")]
    assert max(most_at_once(spans).values()) == 2


def test_metaseq_trains_on_both_gpus_of_a_node(stack: Stack) -> None:
    (node,) = set(gpu_pod_nodes(stack, "metaseq"))
    assert node in {each["metadata"]["name"] for each in of_pool(stack, "a100")}
    assert "training on 2 devices" in log(stack.kube, "metaseq-mpimaster-0")


def test_a_pool_grew_to_its_maximum_and_shrinks_to_its_minimum(stack: Stack) -> None:
    assert any("size to 5 instead of" in message for message in grown(stack, "t4")), grown(stack, "t4")
    eventually(lambda: len(of_pool(stack, "t4")) == 1, "idle nodes are deleted", 240)


def test_metaseq_runs_as_a_batch(stack: Stack) -> None:
    summary = resim_json(stack, "submit", "--njobs", "1", "--template", "metaseq", "--name", "training", "--wait")
    assert (summary["state"], summary["succeeded"], summary["cost"]["atMost"]) == ("Complete", 1, True)
    found = output_sizes(stack, "training")
    outputs = {name.rpartition("/")[2]: size for name, size in found.items() if "/output/" in name}
    assert outputs.pop("training.log") > 0
    assert outputs == {"output-0.bin": SIZE, "output-1.bin": SIZE}
    assert "training on 2 devices" in resim_log(stack, "training")


def resim_log(stack: Stack, batch: str) -> str:
    with blobs(stack, "output") as outputs:
        return str(outputs.download_blob(f"ai/{batch}/results/scenario-000000/log.txt").readall().decode())


def test_without_spot_capacity_a_batch_runs_on_demand(stack: Stack) -> None:
    before = grown(stack, "t4od")
    stack.world.simulator("fault", "capacity", "--size", T4, "--spot", "1")
    summary = resim_json(stack, "submit", "--njobs", "12", "--name", "fallen-back", "--wait")
    stack.world.simulator("heal", "capacity")
    assert (summary["state"], summary["succeeded"]) == ("Complete", 12)
    assert len(grown(stack, "t4od")) > len(before)
    assert any("t4od" in each["node"] for each in results(stack, "fallen-back"))


@pytest.mark.parametrize("name", ["gpu-batch", "resim"])
def test_each_batch_workload_completes_in_a_consumer_stack(name: str, stack: Stack, tmp_path: Path) -> None:
    consumer = Stack.create(stack.world, name, tmp_path / "project", {"platformStack": NAME}, like=name)
    consumer.inside = stack.inside
    try:
        consumer.up()
        assert wait_for_end(consumer, stack)[name].phase == "Complete"
        assert "unchanged" in consumer.up("--expect-no-changes")
    finally:
        consumer.destroy("--remove")
    eventually(lambda: stack.kube.find("v1", "Namespace", name) is None, f"the namespace {name} is gone")
