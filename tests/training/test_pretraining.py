"""The trainer learns, and continues with the same numbers after it was killed; on the CPU.

`make test-training` runs these tests. They need torch.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docker" / "pytorch-pretraining"
SMALL = "--layers 2 --width 64 --heads 2 --vocabulary 300 --sequence 64 --batch 4 --rate 3e-3 --warmup 5".split()  # noqa: SIM905 - as on the command line
OFTEN = ["--log-steps", "5", "--checkpoint-steps", "10"]
TWO = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def command(folder: Path, *options: str, processes: int = 1) -> list[str]:
    start = [sys.executable, *(TWO if processes == 2 else [])]
    return [*start, "-m", "pretraining.train", "--output", str(folder), *SMALL, *OFTEN, *options]


def trained(folder: Path, *options: str, processes: int = 1) -> subprocess.CompletedProcess[str]:
    argv = command(folder, *options, processes=processes)
    return subprocess.run(argv, cwd=FOLDER, env=environment(), capture_output=True, text=True, check=False)


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


def losses(folder: Path) -> dict[int, float]:
    found = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return {each["step"]: each["loss"] for each in found}


def wait_for_checkpoint(training: subprocess.Popen[str], folder: Path) -> None:
    """Waits for any complete checkpoint, because the oldest are deleted."""
    while not [each for each in folder.glob("checkpoints/step-*") if each.suffix != ".unfinished"]:
        assert training.poll() is None
        time.sleep(0.02)


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> dict[int, float]:
    folder = tmp_path_factory.mktemp("complete")
    assert trained(folder, "--steps", "60").returncode == 0
    return losses(folder)


def test_learns(complete: dict[int, float]) -> None:
    entropy = math.log(4)  # four tokens may follow each
    assert complete[5] > complete[30] > complete[60] > entropy


def test_two_processes_learn_the_same(complete: dict[int, float], tmp_path: Path) -> None:
    assert trained(tmp_path, "--steps", "60", processes=2).returncode == 0
    assert losses(tmp_path)[60] == pytest.approx(complete[60], rel=1e-3)


SHARDED = """
import sys
from pretraining import memory, train
memory.WAYS = tuple(way for way in memory.WAYS if way.sharded and way.recomputes == (sys.argv[1] == "recompute"))
sys.exit(train.main(sys.argv[2:]))
"""


@pytest.mark.parametrize("keeps", ["keep", "recompute"])
def test_sharded_trainings_learn_the_same_and_read_checkpoints_of_others(
    complete: dict[int, float], tmp_path: Path, keeps: str
) -> None:
    """Two processes use FSDP, one process uses ZeRO-1 without sharing."""
    (tmp_path / "sharded.py").write_text(SHARDED)
    argv = [sys.executable, *TWO, str(tmp_path / "sharded.py"), keeps, "--output", str(tmp_path), *SMALL, *OFTEN]

    def sharded() -> subprocess.CompletedProcess[str]:
        environ = {**environment(), "PYTHONPATH": str(FOLDER)}
        return subprocess.run([*argv, "--steps", "60"], env=environ, capture_output=True, text=True, check=False)

    def without_last() -> None:
        shutil.rmtree(tmp_path / "checkpoints" / "step-60")

    log = sharded().stdout
    assert ("FSDP, activation checkpointing" in log, "from step 0" in log) == (keeps == "recompute", True)
    assert losses(tmp_path) == pytest.approx(complete, rel=1e-3)
    for run in (lambda: trained(tmp_path, "--steps", "60"), sharded):
        without_last()
        assert "from step 50" in run().stdout
        assert losses(tmp_path)[60] == pytest.approx(complete[60], rel=1e-3)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_killed_training_continues_to_the_same_loss(
    complete: dict[int, float], tmp_path: Path, processes: int
) -> None:
    """Another number of processes reads the same checkpoint, and only sums in another order."""
    started = subprocess.Popen(command(tmp_path, "--steps", "60"), cwd=FOLDER, env=environment(), text=True)
    wait_for_checkpoint(started, tmp_path)
    started.kill()
    started.wait()
    answer = trained(tmp_path, "--steps", "60", processes=processes)
    assert "from step 0" not in answer.stdout
    if processes == 1:
        assert losses(tmp_path)[60] == complete[60]
    assert losses(tmp_path)[60] == pytest.approx(complete[60], rel=1e-3)


def test_saves_its_step_at_sigterm(tmp_path: Path) -> None:
    started = subprocess.Popen(
        command(tmp_path, "--steps", "100000"), cwd=FOLDER, env=environment(), stdout=subprocess.PIPE, text=True
    )
    wait_for_checkpoint(started, tmp_path)
    started.send_signal(signal.SIGTERM)
    log, _ = started.communicate(timeout=60)
    assert started.returncode == 143
    step = int(log.rstrip().rpartition("step ")[2].partition(" ")[0])
    assert (tmp_path / "checkpoints" / f"step-{step}").is_dir()


def test_ignores_incomplete_checkpoints(complete: dict[int, float], tmp_path: Path) -> None:
    unfinished = tmp_path / "checkpoints" / "step-50.unfinished"
    unfinished.mkdir(parents=True)
    np.save(unfinished / "masters-0.npy", np.zeros(3))
    assert trained(tmp_path, "--steps", "60").returncode == 0
    assert losses(tmp_path)[60] == complete[60]


def test_rejects_the_checkpoint_of_another_size(tmp_path: Path) -> None:
    trained(tmp_path, "--steps", "10")
    answer = trained(tmp_path, "--steps", "20", "--width", "128")
    assert (answer.returncode, "width is 64 instead of 128" in answer.stderr) == (2, True)


def test_rejects_files_without_a_complete_sequence(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    np.array([1, 2, 3], "<u2").tofile(data / "a.bin")
    answer = trained(tmp_path, "--steps", "10", "--data", str(data))
    assert (answer.returncode, "a sequence has 65" in answer.stderr) == (2, True), answer.stderr


def test_learns_from_files_of_tokens(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name in ("a", "b"):
        np.tile(np.arange(50, dtype="<u2"), 40).tofile(data / f"{name}.bin")
    assert trained(tmp_path, "--steps", "60", "--data", str(data)).returncode == 0
    assert losses(tmp_path)[60] < 0.5


def test_tensorboard_reads_the_curves(tmp_path: Path) -> None:
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    assert trained(tmp_path, "--steps", "10").returncode == 0
    found = accumulators.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert set(found.Tags()["scalars"]) == {"loss", "gradient", "tokens_per_s", "mfu"}
    assert [each.step for each in found.Scalars("loss")] == [5, 10]
    assert found.Scalars("loss")[-1].value == pytest.approx(losses(tmp_path)[10])


@pytest.fixture
def node(tmp_path: Path) -> list[str]:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    root = FOLDER.parents[1] / "workloads"
    for file in (root / "pytorch_pretraining" / "scripts" / "launch.sh", root / "_scripts" / "infiniband.sh"):
        shutil.copy2(file, scripts)
    return ["bash", str(scripts / "launch.sh"), "--output", str(tmp_path / "out"), *SMALL, *OFTEN]


@pytest.fixture
def variables() -> dict[str, str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    set_by = {"NODES": "1", "GPUS_PER_NODE": "2", "RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return {**environment(), **set_by, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def test_a_stopped_node_saves_and_exits_with_143(tmp_path: Path, node: list[str], variables: dict[str, str]) -> None:
    """torchrun's own exit code is 1 for any failure of a process."""
    started = subprocess.Popen([*node, "--steps", "100000"], cwd=FOLDER, env=variables, text=True)
    wait_for_checkpoint(started, tmp_path / "out")
    started.send_signal(signal.SIGTERM)
    assert started.wait(120) == 143
    assert not list((tmp_path / "out" / "checkpoints").glob("*.unfinished"))


def test_a_node_with_invalid_options_has_the_trainers_exit_code(node: list[str], variables: dict[str, str]) -> None:
    answer = subprocess.run(
        [*node, "--steps", "10", "--micro-batch", "3"], cwd=FOLDER, env=variables, capture_output=True, check=False
    )
    assert answer.returncode == 2
