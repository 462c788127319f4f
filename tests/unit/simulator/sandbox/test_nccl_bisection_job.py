from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from simulator.world.faults import Fault, new_fault
from tests.support.pools import A100
from tests.support.sizes import H100
from tests.unit.simulator.sandbox.mpi_pods import BisectionJob
from tests.unit.simulator.sandbox.sandboxes import node_name


def search(folder: Path, *faults: Fault, nodes: int = 4, **more: Any) -> tuple[int, str, dict[str, Any]]:
    """Returns exit code, last line and result."""
    code, log = BisectionJob(folder, nodes=nodes, faults=list(faults), **more).run()
    (line,) = [line for line in log.splitlines() if line.startswith("JSON ")] or [log]
    return code, log.splitlines()[-1], json.loads(line.removeprefix("JSON "))


def findings(result: dict[str, Any]) -> list[Sequence[str]]:
    return [(each["kind"], each["node"], each["rail"], each["state"]) for each in result["findings"]]


@pytest.mark.parametrize(("sku", "gbs", "floor"), [(H100, "367.71", 340), (A100, "183.81", 170)])
def test_a_healthy_fabric_needs_one_round(tmp_path: Path, sku: str, gbs: str, floor: int) -> None:
    code, verdict, result = search(tmp_path, sku=sku)
    assert verdict == f"VERDICT: PASS; busbw={gbs} GB/s floor={floor} GB/s nodes=4 rounds=1 measurements=1"
    assert code == 0
    assert result["rails"] == [f"mlx5_{number}" for number in range(8)]
    assert result["nodes"] == [node_name(number) for number in range(4)]


def test_finds_a_slow_link(tmp_path: Path) -> None:
    code, verdict, result = search(tmp_path, new_fault("link", node_name(2), "mlx5_3", 100))
    assert code == 1
    assert findings(result) == [("link", node_name(2), "mlx5_3", "bad")]
    assert verdict.startswith(f"VERDICT: FAIL bad: link mlx5_3 of {node_name(2)}; rest=367.71 GB/s floor=340 GB/s")


def test_finds_a_slow_rail_a_down_port_and_a_lost_gpu(tmp_path: Path) -> None:
    rail = new_fault("rail", device="mlx5_5", gbps=100)
    port, gpu = new_fault("hca", node_name(1), "mlx5_0"), new_fault("gpu", node_name(3), "6")
    code, verdict, result = search(tmp_path, rail, port, gpu, nodes=5)
    assert findings(result) == [
        ("rail", "", "mlx5_5", "bad"),
        ("link", node_name(1), "mlx5_0", "bad"),
        ("link", node_name(3), "mlx5_6", "unknown"),
    ]
    rail_found, port_found, gpu_found = result["findings"]
    assert (rail_found["busbw"], rail_found["floor"]) == (11.92, 45)
    assert port_found["why"] == "port is DOWN"
    assert "Test CUDA failure" in gpu_found["why"]
    assert code == 1
    assert verdict.startswith(f"VERDICT: FAIL bad: rail mlx5_5, link mlx5_0 of {node_name(1)}; rest=")


def test_nodes_that_cannot_be_measured_are_unknown(tmp_path: Path) -> None:
    """One node is in a separate partition, and one worker does not answer."""
    code, verdict, result = search(tmp_path, new_fault("partition", node_name(1)), nodes=5, absent_workers={4})
    lost = "nccl-bisection-mpiworker-4.nccl-bisection"
    assert findings(result) == [("node", node_name(1), "", "unknown"), ("node", lost, "", "unknown")]
    assert "status=12" in result["findings"][0]["why"]
    assert result["findings"][1]["why"] == "no ssh within 10 s"
    assert verdict.startswith(f"VERDICT: UNKNOWN not measured: node {node_name(1)}, node {lost}; rest=")
    assert code == 2


def test_one_reachable_worker_is_not_enough(tmp_path: Path) -> None:
    code, log = BisectionJob(tmp_path, nodes=2, absent_workers={1}).run()
    assert log.splitlines()[-1] == "VERDICT: UNKNOWN 1 of 2 workers answer, but a single node uses no link"
    assert code == 2
