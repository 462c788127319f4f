"""The bisection's real scripts in real sandboxes: what it finds of a fabric with each fault, and of one with none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from components.context import GpuPool
from simulator.sandbox import sandbox
from simulator.world.faults import Fault, new_fault
from tests.units.simulator.sandbox.job import PLATFORM, Job, node_name
from workloads._mpi import MpiJob
from workloads.nccl_bisection import manifests
from workloads.nccl_bisection.options import NcclBisectionOptions


@pytest.fixture(scope="module", autouse=True)
def _needs_sandbox() -> None:
    assert sandbox.available() is None


class BisectionJob(Job):
    """The search of some nodes."""

    def job(self, pool: GpuPool) -> MpiJob:
        options = NcclBisectionOptions.model_validate({"sshTimeoutSeconds": 10, **self.options})
        image = "registry.test/nccl-test:1"
        return manifests.job(manifests.Run(options=options, pool=pool, nodes=self.nodes, image=image, **PLATFORM))


def searched(folder: Path, *faults: Fault, nodes: int = 4, **more: Any) -> tuple[int, str, dict[str, Any]]:
    """Exit code, last line, result."""
    code, log = BisectionJob(folder, nodes=nodes, faults=list(faults), **more).run()
    (line,) = [line for line in log.splitlines() if line.startswith("JSON ")] or [log]
    return code, log.splitlines()[-1], json.loads(line.removeprefix("JSON "))


def named(result: dict[str, Any]) -> list[Sequence[str]]:
    return [(each["kind"], each["node"], each["rail"], each["state"]) for each in result["findings"]]


def test_one_round_for_a_healthy_fabric(tmp_path: Path) -> None:
    code, verdict, result = searched(tmp_path)
    assert (code, verdict) == (0, "VERDICT: PASS; busbw=367.71 GB/s floor=340 GB/s nodes=4 rounds=1 measurements=1")


def test_a_slow_link(tmp_path: Path) -> None:
    code, verdict, result = searched(tmp_path, new_fault("link", node_name(2), "mlx5_3", 100))
    assert code == 1
    assert named(result) == [("link", node_name(2), "mlx5_3", "bad")]
    assert verdict.startswith(f"VERDICT: FAIL bad: link mlx5_3 of {node_name(2)}; busbw=")
