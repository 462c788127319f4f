"""A pool that starts without nodes: jobs bring them, an update keeps them, and they go when nobody needs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.world import Stack, ended, eventually, gpu_nodes, names

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
POOL: dict[str, Any] = {
    "vmSku": "Standard_ND96isr_H100_v5",
    "count": 0,
    "autoscale": {"min": 0, "max": 2},
}


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    options = {"nccl-allreduce": {"numNodes": 2}}
    return new_stack("scaled", vmSku=None, nodeCount=None, pools={"gpu": POOL}, workloadOptions=options)


def test_a_job_on_an_empty_pool_brings_its_nodes_and_runs(stack: Stack) -> None:
    stack.up()
    eventually(lambda: len(gpu_nodes(stack.kube)) == 2, "the autoscaler brings both nodes")
    job = stack.kube.get("batch.volcano.sh/v1alpha1", "Job", "nccl-allreduce", "ai")
    for node in gpu_nodes(stack.kube):
        assert node["metadata"]["creationTimestamp"] >= job["metadata"]["creationTimestamp"], "it comes for the job"
    assert ended(stack.kube) == "Completed"


def test_an_update_of_the_pool_keeps_the_nodes_that_it_has(stack: Stack) -> None:
    for node in gpu_nodes(stack.kube):
        hold(stack, node["metadata"]["name"])
    before = names(gpu_nodes(stack.kube))
    assert len(before) == 2
    stack.set(pools={"gpu": {**POOL, "labels": {"team": "a"}}})
    stack.up()
    labelled = [node for node in gpu_nodes(stack.kube) if node["metadata"]["labels"].get("team") == "a"]
    assert names(labelled) == before
    stack.up("--expect-no-changes")


def test_nodes_that_nobody_needs_go(stack: Stack) -> None:
    for name in names(stack.kube.list("v1", "Pod", "default")):
        stack.kube.delete("v1", "Pod", name, "default")
    eventually(lambda: gpu_nodes(stack.kube) == [], "the pool is empty again")


def hold(stack: Stack, node: str) -> None:
    """A pod that keeps its node."""
    spec = {
        "nodeName": node,
        "containers": [{"name": "main", "image": "busybox"}],
        "tolerations": [{"operator": "Exists"}],
    }
    metadata = {"name": f"holds-{node}", "namespace": "default"}
    stack.kube.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
