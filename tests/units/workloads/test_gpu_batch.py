"""Pods that share a GPU share its memory."""

from __future__ import annotations

from typing import Any

import pytest

from config.problems.errors import SettingsError
from tests.support.settings import load
from workloads import find

T4 = "Standard_NC4as_T4_v3"


def settings(memory: int, **pool: Any) -> dict[str, Any]:
    pools = {"gpu": {"vmSku": T4, **pool}}
    return {"pools": pools, "workloads": "gpu-batch", "workloadOptions": {"gpu-batch": {"memoryMb": memory}}}


@pytest.mark.parametrize(
    ("memory", "pool", "most"), [(13_733, {}, 13_732), (6_867, {"gpuSlices": 2}, 6_866)], ids=["alone", "in two"]
)
def test_more_memory_than_there_is_for_each_is_refused(memory: int, pool: dict[str, Any], most: int) -> None:
    with pytest.raises(SettingsError) as caught:
        load(settings(memory, **pool), known=find())
    (problem,) = caught.value.problems
    assert str(problem).startswith(f'workloadOptions["gpu-batch"].memoryMb is {memory}, but GPUs of {T4} have 16 GB')
    assert problem.fix.endswith(f'["gpu-batch"].memoryMb\' {most}')
    load(settings(most, **pool), known=find())


def test_less_memory_than_gpu_burn_takes_is_refused() -> None:
    """It aborts with "Low mem for result" (gpu_burn-drv.cpp, initBuffers)."""
    with pytest.raises(SettingsError) as caught:
        load(settings(767), known=find())
    assert "memoryMb" in str(caught.value)
    load(settings(768), known=find())
