from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.pools import A100
from tests.unit.simulator.sandbox.mpi_pods import MetaseqJob
from tests.unit.simulator.sandbox.test_metaseq_trainer import updates


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str]:
    return MetaseqJob(tmp_path_factory.mktemp("trained"), options={"modelSize": "66b", "aim": True}).run()


def rate(log: str) -> float:
    """Returns the last update's tokens/s, like throughput.sh."""
    return float(re.findall(r"throughput: (\d+) tokens/s", log)[-1])


def test_two_nodes_train_and_print_their_speed(trained: tuple[int, str]) -> None:
    code, log = trained
    assert code == 0, log
    assert "via NET/IB/0/GDRDMA" in log
    assert "Storing logs at Aim repo: /workspace/aim" in log
    found = updates(log)
    assert [update["num_updates"] for update in found] == ["1", "2", "3", "4", "5"]
    assert {(update["wpb"], update["bsz"]) for update in found} == {("2.09715e+06", "1024")}
    assert found[0]["wps"] == "0"
    assert "MFU 47.0 %" in log
    assert "mean of the last 1 updates:" in log.splitlines()[-1]


def test_one_node_needs_no_network(tmp_path: Path) -> None:
    code, log = MetaseqJob(tmp_path, nodes=1, sku=A100, options={"modelSize": "6.7b"}).run()
    assert code == 0, log
    assert "NET/IB/0" not in log
    assert "MFU 47.0 %" in log


def test_without_its_topology_file_the_job_is_slower(tmp_path: Path, trained: tuple[int, str]) -> None:
    job = MetaseqJob(tmp_path, options={"modelSize": "66b", "numUpdates": 2})
    del job.files["topology.xml"]
    code, log = job.run()
    assert code == 0, log
    assert "Could not open XML topology file" in log
    assert "Could not open XML topology file" not in trained[1]
    assert rate(log) < 0.9 * rate(trained[1])


def test_an_unknown_option_fails_the_job(tmp_path: Path) -> None:
    job = MetaseqJob(tmp_path, options={"modelSize": "66b"})
    job.files["arguments"] += "--learning-rate\n0.1\n"
    code, log = job.run()
    assert code != 0, log
    assert "metaseq-train: error: unrecognized arguments: --learning-rate" in log
    assert "FAILED: " in log.splitlines()[-1]
    assert not updates(log)
