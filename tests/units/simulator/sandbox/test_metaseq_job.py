"""The Metaseq job's real scripts in real sandboxes, up to a simulated trainer: it trains, or fails as on real Azure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulator.sandbox import sandbox
from simulator.world.faults import new_fault
from tests.units.simulator.sandbox.job import MetaseqJob, node_name

A100 = "Standard_ND96asr_v4"


@pytest.fixture(scope="module", autouse=True)
def _needs_sandbox() -> None:
    assert sandbox.available() is None


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str]:
    """Exit code and log of a training on two nodes on which nothing is wrong."""
    return MetaseqJob(tmp_path_factory.mktemp("trained"), options={"modelSize": "66b", "aim": True}).run()


def updates(log: str) -> list[dict[str, Any]]:
    """The statistics that metaseq logs of each update."""
    return [json.loads(found) for found in re.findall(r"\| train_inner \| (\{.*\})", log)]


def rate(log: str) -> float:
    """Tokens/s of the last update, as throughput.sh says it."""
    return float(re.findall(r"throughput: (\d+) tokens/s", log)[-1])


def without(job: MetaseqJob, option: str, *, also: int = 1) -> None:
    """Takes an option, and the `also` words after it, out of the command line."""
    words = job.files["arguments"].splitlines()
    at = words.index(option)
    job.files["arguments"] = "\n".join(words[:at] + words[at + 1 + also :]) + "\n"


def with_words(job: MetaseqJob, *words: str) -> None:
    job.files["arguments"] += "".join(f"{word}\n" for word in words)


def in_script(job: MetaseqJob, script: str, old: str, new: str) -> None:
    assert old in job.files[script]
    job.files[script] = job.files[script].replace(old, new)


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


def _too_large_a_micro_batch(job: MetaseqJob) -> None:
    without(job, "--batch-size")
    with_words(job, "--batch-size", "16")


def _unknown_option(job: MetaseqJob) -> None:
    with_words(job, "--learning-rate", "0.1")


def _wrong_world_size(job: MetaseqJob) -> None:
    in_script(job, "train.sh", '"$OMPI_COMM_WORLD_SIZE"', "32")


def _global_rank_as_gpu(job: MetaseqJob) -> None:
    in_script(job, "train.sh", '"$OMPI_COMM_WORLD_LOCAL_RANK"', '"$OMPI_COMM_WORLD_RANK"')


def _two_partitions(job: MetaseqJob) -> None:
    job.faults.append(new_fault("partition", node_name(1)))


def _no_worker(job: MetaseqJob) -> None:
    job.absent_workers = {1}
    job.set_env("SSH_TIMEOUT_S", "3")


def _script_missing(job: MetaseqJob) -> None:
    del job.files["train.sh"]


BROKEN: list[tuple[Callable[[MetaseqJob], None], str]] = [
    (_too_large_a_micro_batch, "torch.cuda.OutOfMemoryError: CUDA out of memory"),
    (_unknown_option, "metaseq-train: error: unrecognized arguments: --learning-rate"),
    (_wrong_world_size, "waiting for clients. 16/32 clients joined"),
    (_global_rank_as_gpu, "CUDA error: invalid device ordinal"),
    (_two_partitions, "with status=12"),
    (_no_worker, "FAILED: no ssh to worker metaseq-mpiworker-1.metaseq"),
    (_script_missing, "/opt/metaseq/train.sh: No such file or directory"),
]


@pytest.mark.parametrize(("damage", "expected"), BROKEN, ids=[damage.__name__.strip("_") for damage, _ in BROKEN])
def test_what_breaks_it(tmp_path: Path, damage: Callable[[MetaseqJob], None], expected: str) -> None:
    job = MetaseqJob(tmp_path, options={"modelSize": "66b"})
    damage(job)
    code, log = job.run()
    assert code != 0, log
    assert expected in log
    assert "FAILED: " in log.splitlines()[-1]
    assert not updates(log)


def test_without_its_topology_file_it_is_slower(tmp_path: Path, trained: tuple[int, str]) -> None:
    job = MetaseqJob(tmp_path, options={"modelSize": "66b", "numUpdates": 2})
    del job.files["topology.xml"]
    code, log = job.run()
    assert code == 0, log
    assert "Could not open XML topology file" in log
    assert "Could not open XML topology file" not in trained[1]
    assert rate(log) < 0.9 * rate(trained[1])
