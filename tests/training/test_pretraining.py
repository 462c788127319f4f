"""The trainer, on the CPU: it learns what there is to learn, and goes on to the same numbers when it is killed.

`make test-training` runs it where torch is.
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
    """By step."""
    found = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return {each["step"]: each["loss"] for each in found}


def wait_for_checkpoint(training: subprocess.Popen[str], folder: Path) -> None:
    """Until there is any: old ones go."""
    while not [each for each in folder.glob("checkpoints/step-*") if each.suffix != ".unfinished"]:
        assert training.poll() is None
        time.sleep(0.02)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[int, float]:
    """An unbroken run."""
    folder = tmp_path_factory.mktemp("whole")
    assert trained(folder, "--steps", "60").returncode == 0
    return losses(folder)


def test_it_learns(whole: dict[int, float]) -> None:
    assert whole[5] > whole[30] > whole[60] > math.log(4), "four tokens may follow each: no loss is below their entropy"


def test_two_processes_learn_the_same(whole: dict[int, float], tmp_path: Path) -> None:
    assert trained(tmp_path, "--steps", "60", processes=2).returncode == 0
    assert losses(tmp_path)[60] == pytest.approx(whole[60], rel=1e-3)


SHARDED = """
import sys
from pretraining import memory, train
memory.WAYS = tuple(way for way in memory.WAYS if way.sharded and way.recomputes == (sys.argv[1] == "recompute"))
sys.exit(train.main(sys.argv[2:]))
"""
"""A training as for a model that does not fit otherwise."""


@pytest.mark.parametrize("keeps", ["keep", "recompute"])
def test_two_processes_that_share_all_learn_the_same_and_read_each_others_checkpoints(
    whole: dict[int, float], tmp_path: Path, keeps: str
) -> None:
    """FSDP and ZeRO-1, which one process has, that shares nothing."""
    (tmp_path / "sharded.py").write_text(SHARDED)
    argv = [sys.executable, *TWO, str(tmp_path / "sharded.py"), keeps, "--output", str(tmp_path), *SMALL, *OFTEN]

    def sharded() -> subprocess.CompletedProcess[str]:
        environ = {**environment(), "PYTHONPATH": str(FOLDER)}
        return subprocess.run([*argv, "--steps", "60"], env=environ, capture_output=True, text=True, check=False)

    def without_last() -> None:
        shutil.rmtree(tmp_path / "checkpoints" / "step-60")

    said = sharded().stdout
    assert ("FSDP, activation checkpointing" in said, "from step 0" in said) == (keeps == "recompute", True)
    assert losses(tmp_path) == pytest.approx(whole, rel=1e-3)
    for run in (lambda: trained(tmp_path, "--steps", "60"), sharded):
        without_last()
        assert "from step 50" in run().stdout
        assert losses(tmp_path)[60] == pytest.approx(whole[60], rel=1e-3)


@pytest.mark.parametrize("processes", [1, 2])
def test_one_that_is_killed_goes_on_to_the_same_loss(whole: dict[int, float], tmp_path: Path, processes: int) -> None:
    """With another number of processes it reads the same checkpoint, and sums in another order."""
    started = subprocess.Popen(command(tmp_path, "--steps", "60"), cwd=FOLDER, env=environment(), text=True)
    wait_for_checkpoint(started, tmp_path)
    started.kill()
    started.wait()
    answer = trained(tmp_path, "--steps", "60", processes=processes)
    assert "from step 0" not in answer.stdout
    if processes == 1:
        assert losses(tmp_path)[60] == whole[60]
    assert losses(tmp_path)[60] == pytest.approx(whole[60], rel=1e-3)


def test_one_that_is_told_to_stop_saves_its_step(tmp_path: Path) -> None:
    started = subprocess.Popen(
        command(tmp_path, "--steps", "100000"), cwd=FOLDER, env=environment(), stdout=subprocess.PIPE, text=True
    )
    wait_for_checkpoint(started, tmp_path)
    started.send_signal(signal.SIGTERM)
    said, _ = started.communicate(timeout=60)
    assert started.returncode == 143
    step = int(said.rstrip().rpartition("step ")[2].partition(" ")[0])
    assert (tmp_path / "checkpoints" / f"step-{step}").is_dir()


def test_a_checkpoint_that_was_broken_off_is_passed_over(whole: dict[int, float], tmp_path: Path) -> None:
    unfinished = tmp_path / "checkpoints" / "step-50.unfinished"
    unfinished.mkdir(parents=True)
    np.save(unfinished / "masters-0.npy", np.zeros(3))
    assert trained(tmp_path, "--steps", "60").returncode == 0
    assert losses(tmp_path)[60] == whole[60]


def test_a_checkpoint_of_another_size_is_refused(tmp_path: Path) -> None:
    trained(tmp_path, "--steps", "10")
    answer = trained(tmp_path, "--steps", "20", "--width", "128")
    assert (answer.returncode, "width 64 and not 128" in answer.stderr) == (2, True)


@pytest.mark.parametrize(
    ("options", "processes", "told"),
    [
        (["--batch", "3"], 2, "take 4"),
        (["--micro-batch", "3"], 1, "take 1, 2, 4"),
        (["--heads", "3"], 1, "does not divide among 3 heads"),
    ],
)
def test_what_does_not_divide_is_refused_with_what_would(
    tmp_path: Path, options: list[str], processes: int, told: str
) -> None:
    answer = trained(tmp_path, "--steps", "10", *options, processes=processes)
    assert answer.returncode != 0
    assert told in answer.stderr


@pytest.mark.parametrize(
    ("tokens", "told"),
    [(None, r"no file *.bin"), ([], "are empty"), ([1, 2, 3], "a sequence has 65"), ([999] * 500, "token 999")],
)
def test_files_of_tokens_that_are_of_no_use_are_refused(tmp_path: Path, tokens: list[int] | None, told: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    if tokens is not None:
        np.array(tokens, "<u2").tofile(data / "a.bin")
    answer = trained(tmp_path, "--steps", "10", "--data", str(data))
    assert (answer.returncode, told in answer.stderr) == (2, True), answer.stderr


def test_files_of_tokens_are_learnt(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name in ("a", "b"):
        np.tile(np.arange(50, dtype="<u2"), 40).tofile(data / f"{name}.bin")
    assert trained(tmp_path, "--steps", "60", "--data", str(data)).returncode == 0
    assert losses(tmp_path)[60] < 0.5


def test_tensorboard_finds_the_curves(tmp_path: Path) -> None:
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    assert trained(tmp_path, "--steps", "10").returncode == 0
    found = accumulators.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert set(found.Tags()["scalars"]) == {"loss", "gradient", "tokens_per_s", "mfu"}
    assert [each.step for each in found.Scalars("loss")] == [5, 10]
    assert found.Scalars("loss")[-1].value == pytest.approx(losses(tmp_path)[10])


@pytest.fixture
def node(tmp_path: Path) -> list[str]:
    """The command of a node with two GPUs, which are processes here."""
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    root = FOLDER.parents[1] / "workloads"
    for file in (root / "pytorch_pretraining" / "scripts" / "launch.sh", root / "_scripts" / "infiniband.sh"):
        shutil.copy2(file, scripts)
    return ["bash", str(scripts / "launch.sh"), "--output", str(tmp_path / "out"), *SMALL, *OFTEN]


@pytest.fixture
def of_operator() -> dict[str, str]:
    """What the training operator and the manifest set."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    set_by = {"NODES": "1", "GPUS_PER_NODE": "2", "RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return {**environment(), **set_by, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def test_a_node_that_is_told_to_stop_ends_as_evicted_once_all_is_saved(
    tmp_path: Path, node: list[str], of_operator: dict[str, str]
) -> None:
    """torchrun itself has 1 for whatever its processes end with."""
    started = subprocess.Popen([*node, "--steps", "100000"], cwd=FOLDER, env=of_operator, text=True)
    wait_for_checkpoint(started, tmp_path / "out")
    started.send_signal(signal.SIGTERM)
    assert started.wait(120) == 143
    assert not list((tmp_path / "out" / "checkpoints").glob("*.unfinished"))


def test_a_node_whose_options_cannot_be_ends_as_the_trainer_does(node: list[str], of_operator: dict[str, str]) -> None:
    answer = subprocess.run(
        [*node, "--steps", "10", "--micro-batch", "3"], cwd=FOLDER, env=of_operator, capture_output=True, check=False
    )
    assert answer.returncode == 2
