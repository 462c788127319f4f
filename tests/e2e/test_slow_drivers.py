"""An autoscaled InfiniBand pool beside a fixed one, with nodes that need long to offer their GPUs. In order.

Nodes with the label `nvidia.com/gpu.deploy.operands=false` get no driver until the label is removed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from k8s.objects import Object, condition
from tests.support.world import Stack, eventually, gpu_nodes, names

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
LABEL = "nvidia.com/gpu.deploy.operands"
SLOW: dict[str, Any] = {"vmSku": "Standard_ND96isr_H100_v5", "labels": {LABEL: "false"}}
BURST = {**SLOW, "autoscale": {"min": 0, "max": 3}}
WAITS_S = 90
"""The duration of the driver installation: longer than the autoscaler needs to add or delete a node (30 seconds),
shorter than the limit for a node's start (300 seconds).
"""


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    pools = {"train": {**SLOW, "count": 1}, "burst": BURST}
    return new_stack("slow", vmSku=None, nodeCount=None, pools=pools, workloads=None)


def test_a_fixed_pool_without_gpus_blocks_the_autoscaler_and_diagnosis_reports_it(stack: Stack) -> None:
    assert "pools.train has a fixed count (1) beside pools.burst" in stack.up()
    stack.kube.create(job())
    eventually(lambda: "to any pool while node" in stack.why("burst", namespace="default"), "diagnosis reports it")
    assert of_pool(stack, "burst") == []


def test_with_equal_bounds_other_pools_scale_up(stack: Stack) -> None:
    stack.set(pools={"train": {**SLOW, "autoscale": {"min": 1, "max": 1}}, "burst": BURST})
    before = names(of_pool(stack, "train"))
    assert "fixed count" not in stack.up()
    eventually(lambda: len(of_pool(stack, "burst")) == 1, "the autoscaler adds the node")
    assert names(of_pool(stack, "train")) == before


def test_slow_drivers_neither_add_nor_remove_nodes(stack: Stack) -> None:
    before = names(of_pool(stack, "burst"))
    until = time.monotonic() + WAITS_S
    while time.monotonic() < until:
        assert names(of_pool(stack, "burst")) == before
        time.sleep(3)
    assert not scheduled(stack), "the nodes have no GPUs"
    for node in of_pool(stack, "burst"):
        stack.kube.patch("v1", "Node", node["metadata"]["name"], None, {"metadata": {"labels": {LABEL: None}}})
    eventually(lambda: scheduled(stack), "the pod gets the node's GPUs", 180)
    assert names(of_pool(stack, "burst")) == before


def scheduled(stack: Stack) -> bool:
    pods = [pod for pod in stack.kube.list("v1", "Pod", "default") if pod["metadata"]["name"].startswith("burst-")]
    return bool(pods) and all(condition(pod, "PodScheduled").get("status") == "True" for pod in pods)


def of_pool(stack: Stack, key: str) -> list[Object]:
    return [node for node in gpu_nodes(stack.kube) if node["metadata"]["labels"]["ai-on-aks/pool"] == key]


def job() -> Object:
    """Returns a Job of one pod that takes a node of the autoscaled pool."""
    devices = {"nvidia.com/gpu": "8", "nvidia.com/mlnxnics": "8"}
    spec = {
        "restartPolicy": "Never",
        "nodeSelector": {"ai-on-aks/pool": "burst"},
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": "alpine", "resources": {"requests": devices, "limits": devices}}],
    }
    metadata = {"name": "burst", "namespace": "default"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {"spec": spec}}}
