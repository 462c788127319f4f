"""The output of `status` while a training runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.world import Stack, eventually, log

pytestmark = [pytest.mark.simulator, pytest.mark.long]


def test_status_shows_the_workload_that_uses_gpus(new_stack: Callable[..., Stack]) -> None:
    """The training also accepts the options of dashboards."""
    options = {"metaseq": {"aim": True, "tensorboard": True}}
    stack = new_stack("status", workloads="metaseq", workloadOptions=options)
    stack.up()
    eventually(lambda: _runs(stack), "the training runs", 180)
    eventually(lambda: "num_updates" in log(stack.kube, "metaseq-mpimaster-0"), "the training has made updates", 180)
    lines = stack.world.simulator("status").stdout.splitlines()
    gpu = next(line for line in lines if line.startswith("gpu"))
    assert gpu.split() == ["gpu", "Standard_ND96isr_H100_v5", "2", "16", "8", "8", "ai/metaseq", "8"]


def _runs(stack: Stack) -> bool:
    pod = stack.kube.find("v1", "Pod", "metaseq-mpimaster-0", "ai") or {}
    return bool(pod.get("status", {}).get("phase") == "Running")
