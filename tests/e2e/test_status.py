"""`status` tells which workload has a node, while a training runs that does not end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.world import Stack, eventually, log

pytestmark = [pytest.mark.simulator, pytest.mark.long]


def test_status_tells_who_has_the_gpus(new_stack: Callable[..., Stack]) -> None:
    """The training takes what it is told of dashboards."""
    options = {"metaseq": {"aim": True, "tensorboard": True}}
    stack = new_stack("status", workloads="metaseq", workloadOptions=options)
    stack.up()
    eventually(lambda: _runs(stack), "the training runs", 180)
    eventually(lambda: "num_updates" in log(stack.kube, "metaseq-mpimaster-0"), "the training has made updates", 180)
    said = stack.world.simulator("status").stdout
    gpu = next(line for line in said.splitlines() if line.startswith("gpu"))
    assert gpu.split() == ["gpu", "Standard_ND96isr_H100_v5", "2", "16", "8", "8", "ai/metaseq", "8"]


def _runs(stack: Stack) -> bool:
    """Only then it has a log."""
    pod = stack.kube.find("v1", "Pod", "metaseq-mpimaster-0", "ai") or {}
    return bool(pod.get("status", {}).get("phase") == "Running")
