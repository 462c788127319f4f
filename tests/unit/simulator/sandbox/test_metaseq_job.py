"""The Metaseq job's real scripts in real sandboxes, up to a simulated trainer: it trains, or fails as on real Azure."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.pools import A100
from tests.unit.simulator.sandbox.mpi_pods import MetaseqJob
from tests.unit.simulator.sandbox.test_metaseq_trainer import updates


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str]:
    """Exit code and log of a training on two nodes on which nothing is wrong."""
    return MetaseqJob(tmp_path_factory.mktemp("trained"), options={"modelSize": "66b", "aim": True}).run()


def rate(log: str) -> float:
    """Tokens/s of the last update, as throughput.sh says it."""
    return float(re.findall(r"throughput: (\d+) tokens/s", log)[-1])


def test_two_nodes_train_and_say_how_fast(trained: tuple[int, str]) -> None:
    code, log = trained
    assert code == 0, log
    assert "via NET/IB/0/GDRDMA" in log
    assert "Storing logs at Aim repo: /workspace/aim" in log
    found = updates(log)
    assert [update["num_updates"] for update in found] == ["1", "2", "3", "4", "5"]
    assert {(update["wpb"], update["bsz"]) for update in found} == {("2.09715e+06", "1024")}, "the table's batch"
    assert found[0]["wps"] == "0"
    assert "MFU 47.0 %" in log, "what performance.yaml says of a healthy training"
    assert "mean of the last 1 updates:" in log.splitlines()[-1]


def test_one_node_needs_no_network(tmp_path: Path) -> None:
    code, log = MetaseqJob(tmp_path, nodes=1, sku=A100, options={"modelSize": "6.7b"}).run()
    assert code == 0, log
    assert "NET/IB/0" not in log
    assert "MFU 47.0 %" in log


def test_without_its_topology_file_it_is_slower(tmp_path: Path, trained: tuple[int, str]) -> None:
    job = MetaseqJob(tmp_path, options={"modelSize": "66b", "numUpdates": 2})
    del job.files["topology.xml"]
    code, log = job.run()
    assert code == 0, log
    assert "Could not open XML topology file" in log
    assert "Could not open XML topology file" not in trained[1]
    assert rate(log) < 0.9 * rate(trained[1])


def _unknown_option(job: MetaseqJob) -> None:
    job.files["arguments"] += "--learning-rate\n0.1\n"


def _wrong_world_size(job: MetaseqJob) -> None:
    job.files["train.sh"] = job.files["train.sh"].replace('"$OMPI_COMM_WORLD_SIZE"', "32")


def _no_worker(job: MetaseqJob) -> None:
    job.absent_workers = {1}
    job.set_env("SSH_TIMEOUT_S", "3")


def _script_missing(job: MetaseqJob) -> None:
    del job.files["train.sh"]


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (_unknown_option, "metaseq-train: error: unrecognized arguments: --learning-rate"),
        (_wrong_world_size, "waiting for clients. 16/32 clients joined"),
        (_no_worker, "FAILED: no ssh to worker metaseq-mpiworker-1.metaseq"),
        (_script_missing, "/opt/metaseq/train.sh: No such file or directory"),
    ],
)
def test_what_breaks_the_job(tmp_path: Path, damage: Callable[[MetaseqJob], None], expected: str) -> None:
    job = MetaseqJob(tmp_path, options={"modelSize": "66b"})
    damage(job)
    code, log = job.run()
    assert code != 0, log
    assert expected in log
    assert "FAILED: " in log.splitlines()[-1]
    assert not updates(log)
