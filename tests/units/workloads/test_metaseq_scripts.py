"""The scripts of the Metaseq job, run as scripts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import workloads

FOLDER = Path(workloads.__file__).parent
SCRIPTS = [
    script for folder in ("_scripts", "_mpi_scripts", "metaseq/scripts") for script in (FOLDER / folder).glob("*.sh")
]
ENVIRONMENT = {"GPUS": "8", "FLOPS_PER_TOKEN": "9.1e9", "PEAK_FLOPS": "7.912e15"}


def run(command: list[str], text: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], **ENVIRONMENT, **variables}
    return subprocess.run(command, input=text, env=environment, capture_output=True, text=True, timeout=60, check=False)


def update(number: int, rate: str) -> str:
    """A line as metaseq's JSON progress bar logs it."""
    stats = f'{{"epoch": 1, "loss": "15.878", "wps": "{rate}", "ups": "0.71", "num_updates": "{number}"}}'
    return f"2026-11-21 14:05:27 | INFO | train_inner | {stats}"


def put_scripts(folder: Path) -> None:
    """As the job's ConfigMap brings them, with the host file moved to where a test may write."""
    for script in SCRIPTS:
        text = script.read_text().replace("/etc/volcano/mpiworker.host", str(folder / "hosts"))
        (folder / script.name).write_text(text)


def measured(folder: Path, *rates: str) -> list[str]:
    """What throughput.sh adds to a log with these updates."""
    put_scripts(folder)
    lines = [update(number, rate) for number, rate in enumerate(rates, start=1)]
    done = run(["bash", str(folder / "throughput.sh")], "\n".join(["NCCL INFO Init COMPLETE", *lines]) + "\n")
    assert done.returncode == 0, done
    assert done.stdout.splitlines()[0] == "NCCL INFO Init COMPLETE"
    assert [line for line in done.stdout.splitlines() if line in lines] == lines, "the log itself is passed on"
    return [line for line in done.stdout.splitlines()[1:] if line not in lines]


def test_each_update_gets_its_rate_and_mfu(tmp_path: Path) -> None:
    assert measured(tmp_path, "0", "400000") == ["throughput: 400000 tokens/s, 50000 tokens/s/GPU, MFU 46.0 %"]


def test_rates_in_scientific_notation_are_numbers_too(tmp_path: Path) -> None:
    assert measured(tmp_path, "0", "1.2e+06") == ["throughput: 1200000 tokens/s, 150000 tokens/s/GPU, MFU 138.0 %"]


def test_the_mean_leaves_the_first_updates_out(tmp_path: Path) -> None:
    *_, last = measured(tmp_path, "0", "1000", "2000", "3000", "300000", "500000")
    assert last == "mean of the last 2 updates: 400000 tokens/s, 50000 tokens/s/GPU, MFU 46.0 %"


def test_a_log_without_updates_has_no_mean(tmp_path: Path) -> None:
    assert measured(tmp_path) == []


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """A folder of commands that stand in for those of the image."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("metaseq-train", "mpirun"):
        (folder / name).write_text('#!/bin/bash\nprintf "%s\\n" "$0 was told:" "$@"\nexit "${FAILURE:-0}"\n')
        (folder / name).chmod(0o755)
    (folder / "ssh").write_text("#!/bin/bash\n")
    (folder / "ssh").chmod(0o755)
    return folder


def test_a_rank_says_who_it_is_and_passes_words_with_spaces_whole(tmp_path: Path, commands: Path) -> None:
    put_scripts(tmp_path)
    (tmp_path / "arguments").write_text("--adam-betas\n(0.9, 0.95)\n")
    ranks = {"OMPI_COMM_WORLD_SIZE": "16", "OMPI_COMM_WORLD_RANK": "11", "OMPI_COMM_WORLD_LOCAL_RANK": "3"}
    path = f"{commands}:{os.environ['PATH']}"
    done = run(["bash", str(tmp_path / "train.sh"), "metaseq-mpiworker-0.metaseq"], PATH=path, **ranks)
    assert done.stdout.splitlines()[1:] == [
        "--adam-betas", "(0.9, 0.95)", "--distributed-world-size", "16", "--distributed-rank", "11", "--device-id", "3",
        "--distributed-init-method", "barrierlesstcpr://metaseq-mpiworker-0.metaseq:29400",
    ]  # fmt: skip


def test_a_rank_outside_of_mpi_does_not_start(tmp_path: Path, commands: Path) -> None:
    put_scripts(tmp_path)
    (tmp_path / "arguments").write_text("--adam-betas\n")
    done = run(["bash", str(tmp_path / "train.sh"), "host"], PATH=f"{commands}:{os.environ['PATH']}")
    assert done.returncode != 0
    assert "OMPI_COMM_WORLD_SIZE" in done.stderr


def launch(tmp_path: Path, commands: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    put_scripts(tmp_path)
    (tmp_path / "hosts").write_text("job-mpiworker-0.job\njob-mpiworker-1.job\n")
    settings = {"NODES": "2", "GPUS_PER_NODE": "8", "CORES_PER_GPU": "12", "SSH_TIMEOUT_S": "1", "NCCL_DEBUG": "INFO"}
    environment = {"PATH": f"{commands}:{os.environ['PATH']}", "TMPDIR": str(tmp_path), **settings, **variables}
    return run(["bash", str(tmp_path / "launch.sh")], **environment)


def test_every_gpu_gets_a_rank_and_a_nodes_ranks_are_consecutive(tmp_path: Path, commands: Path) -> None:
    done = launch(tmp_path, commands)
    assert done.returncode == 0, done
    words = " ".join(done.stdout.splitlines())
    assert "-np 16 --map-by ppr:8:node:pe=12 --rank-by slot --bind-to core" in words
    assert words.endswith(f"-x NCCL_DEBUG -x PATH bash {tmp_path}/train.sh job-mpiworker-0.job")


def test_a_failed_training_fails(tmp_path: Path, commands: Path) -> None:
    done = launch(tmp_path, commands, FAILURE="3")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "FAILED: mpirun ended with exit code 3"


def test_a_worker_that_never_answers_is_named(tmp_path: Path, commands: Path) -> None:
    (commands / "ssh").write_text('#!/bin/bash\n[[ "$*" != *mpiworker-1* ]]\n')
    done = launch(tmp_path, commands)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "FAILED: no ssh to worker job-mpiworker-1.job within 1 s"
