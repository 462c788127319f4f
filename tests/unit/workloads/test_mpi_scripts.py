from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from simulator.host.paths import ROOT
from tests.unit.workloads.nccl_output import ranks, row, table

WORKLOADS = ROOT / "workloads"
SPEED = {"GPUS": "8", "FLOPS_PER_TOKEN": "9.1e9", "PEAK_FLOPS": "7.912e15"}
SETTINGS = {
    **{"NODES": "2", "GPUS_PER_NODE": "8", "CORES_PER_GPU": "12", "SSH_TIMEOUT_S": "1", "NCCL_DEBUG": "INFO"},
    **{"MIN_BYTES": "8M", "MAX_BYTES": "16G", "ITERATIONS": "20", "BUSBW_FLOOR_GBS": "400", "RESTART_WAIT_S": "0.1"},
    "UCX_TLS": "rc",
}
HOSTS = "job-mpiworker-0.job\njob-mpiworker-1.job\n"
FAILS = {"nccl_allreduce": "VERDICT: FAIL", "metaseq": "FAILED:"}


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    command(folder, "ssh", "exit 0")
    return folder


def command(folder: Path, name: str, body: str) -> None:
    (folder / name).write_text(f"#!/bin/bash\n{body}\n")
    (folder / name).chmod(0o755)


def run(words: list[str], commands: Path, text: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{commands}:{os.environ['PATH']}", **variables}
    return subprocess.run(words, input=text, env=environment, capture_output=True, text=True, timeout=60, check=False)


def put_scripts(folder: Path, workload: str) -> None:
    for part in ("_scripts", "_mpi_scripts", f"{workload}/scripts"):
        for script in (WORKLOADS / part).glob("*.sh"):
            moved = script.read_text().replace("/etc/volcano/mpiworker.host", str(folder / "hosts"))
            (folder / script.name).write_text(moved)


def launch(folder: Path, commands: Path, workload: str, hosts: str = HOSTS) -> tuple[int, list[str]]:
    put_scripts(folder, workload)
    (folder / "hosts").write_text(hosts)
    done = run(["bash", str(folder / "launch.sh")], commands, TMPDIR=str(folder), **SETTINGS)
    return done.returncode, done.stdout.splitlines()


def test_launches_one_rank_per_gpu_with_the_environment(tmp_path: Path, commands: Path) -> None:
    (tmp_path / "output").write_text(ranks(*"aaaaaaaabbbbbbbb") + table(row(17179869184, 470, 476)))
    shows = f'echo "ARGS $*"; while [[ $1 != --hostfile ]]; do shift; done; cat "$2" {tmp_path}/output'
    command(commands, "mpirun", shows)
    code, lines = launch(tmp_path, commands, "nccl_allreduce", HOSTS.rstrip())
    arguments = next(line for line in lines if line.startswith("ARGS"))
    assert "-np 16 --map-by ppr:8:node:pe=12 --rank-by slot --bind-to core" in arguments
    assert "-x NCCL_DEBUG -x PATH -x UCX_TLS all_reduce_perf -b 8M -e 16G -f 2 -g 1 -n 20 -c 1" in arguments
    assert [line for line in lines if "slots" in line] == [f"{host} slots=8" for host in HOSTS.split()]
    assert (code, lines[-1].startswith("VERDICT: PASS")) == (0, True)


def test_starts_consecutive_ranks_on_each_node(tmp_path: Path, commands: Path) -> None:
    command(commands, "mpirun", 'printf "%s\\n" "$@"')
    code, lines = launch(tmp_path, commands, "metaseq")
    words = " ".join(lines)
    assert (code, "-np 16 --map-by ppr:8:node:pe=12 --rank-by slot --bind-to core" in words) == (0, True)
    assert words.endswith(f"bash {tmp_path}/train.sh job-mpiworker-0.job")


@pytest.mark.parametrize("workload", FAILS)
def test_reports_a_worker_that_does_not_answer(tmp_path: Path, commands: Path, workload: str) -> None:
    command(commands, "ssh", '[[ "$*" != *mpiworker-1* ]]')
    code, lines = launch(tmp_path, commands, workload)
    assert (code, lines[-1]) == (1, f"{FAILS[workload]} no ssh to worker job-mpiworker-1.job within 1 s")


@pytest.mark.parametrize("workload", FAILS)
def test_a_failed_mpirun_fails(tmp_path: Path, commands: Path, workload: str) -> None:
    command(commands, "mpirun", "echo broken >&2; exit 3")
    code, lines = launch(tmp_path, commands, workload)
    assert (code, lines[-1]) == (1, f"{FAILS[workload]} mpirun ended with exit code 3")


def test_rejects_too_few_hosts(tmp_path: Path, commands: Path) -> None:
    code, lines = launch(tmp_path, commands, "nccl_allreduce", "job-mpiworker-0.job\n")
    assert (code, "names 1 workers instead of 2" in "\n".join(lines)) == (1, True)


def test_waits_for_a_restart_after_a_lost_worker(tmp_path: Path, commands: Path) -> None:
    """Volcano restarts a job when the lost pod is deleted, but not after the master has failed."""
    command(commands, "ssh", f'[[ ! -e {tmp_path}/gone || "$*" != *mpiworker-1* ]]')
    command(commands, "mpirun", f"touch {tmp_path}/gone; exit 3")
    code, (*_, waits, advice, last) = launch(tmp_path, commands, "nccl_allreduce")
    assert waits.startswith("Worker job-mpiworker-1.job no longer answers. If its pod is deleted within 0.1 s")
    assert "docs/health-check.md" in advice
    assert "docs/nccl-bisection.md" in advice
    assert (code, last) == (1, "VERDICT: FAIL mpirun ended with exit code 3")


def test_reports_wrong_values_of_a_failed_test(tmp_path: Path, commands: Path) -> None:
    (tmp_path / "output").write_text(table(row(17179869184, 470, 476, wrong="2")))
    command(commands, "mpirun", f"cat {tmp_path}/output; exit 1")
    code, lines = launch(tmp_path, commands, "nccl_allreduce")
    assert (code, lines[-1].partition("; ")[0]) == (1, "VERDICT: FAIL 4 wrong values in the results")


def test_the_worker_configures_only_infiniband_ports(tmp_path: Path, commands: Path) -> None:
    for device, layer in (("mlx5_0", "InfiniBand"), ("mlx5_1", "InfiniBand"), ("mlx5_8", "Ethernet")):
        port = tmp_path / "sys/class/infiniband" / device / "ports/1"
        port.mkdir(parents=True)
        (port / "link_layer").write_text(f"{layer}\n")
    command(commands, "ssh-keygen", "exit 0")
    command(commands, "sshd", 'echo "sshd $*"')
    moved = {
        "/sys/class": f"{tmp_path}/sys/class",
        "/etc/nccl.conf": f"{tmp_path}/nccl.conf",
        "/run/sshd": f"{tmp_path}/run",
        "/usr/sbin/sshd": f"{commands}/sshd",
    }
    for name in ("_mpi_scripts/worker.sh", "_scripts/infiniband.sh"):
        source = WORKLOADS / name
        script = source.read_text()
        for old, new in moved.items():
            script = script.replace(old, new)
        (tmp_path / source.name).write_text(script)
    done = run(["bash", str(tmp_path / "worker.sh")], commands)
    assert (tmp_path / "nccl.conf").read_text() == "NCCL_IB_HCA==mlx5_0:1,mlx5_1:1\n"
    assert done.stdout.splitlines()[-1] == "sshd -D -e"


@pytest.mark.parametrize("mpi", [True, False])
def test_a_rank_requires_mpis_environment(tmp_path: Path, commands: Path, mpi: bool) -> None:
    put_scripts(tmp_path, "metaseq")
    command(commands, "metaseq-train", 'printf "%s\\n" "$@"')
    (tmp_path / "arguments").write_text("--adam-betas\n(0.9, 0.95)\n")
    placed = {"OMPI_COMM_WORLD_SIZE": "16", "OMPI_COMM_WORLD_RANK": "11", "OMPI_COMM_WORLD_LOCAL_RANK": "3"}
    words = ["bash", str(tmp_path / "train.sh"), "metaseq-mpiworker-0.metaseq"]
    done = run(words, commands, **(placed if mpi else {}))
    if not mpi:
        assert (done.returncode != 0, "OMPI_COMM_WORLD_SIZE" in done.stderr) == (True, True)
        return
    assert done.stdout.splitlines() == [
        "--adam-betas", "(0.9, 0.95)", "--distributed-world-size", "16", "--distributed-rank", "11", "--device-id", "3",
        "--distributed-init-method", "barrierlesstcpr://metaseq-mpiworker-0.metaseq:29400",
    ]  # fmt: skip


def update(number: int, rate: str) -> str:
    stats = f'{{"epoch": 1, "loss": "15.878", "wps": "{rate}", "ups": "0.71", "num_updates": "{number}"}}'
    return f"2026-11-21 14:05:27 | INFO | train_inner | {stats}"


def measured(folder: Path, *rates: str) -> list[str]:
    put_scripts(folder, "metaseq")
    lines = [update(number, rate) for number, rate in enumerate(rates, start=1)]
    text = "\n".join(["NCCL INFO Init COMPLETE", *lines]) + "\n"
    done = run(["bash", str(folder / "throughput.sh")], folder, text, **SPEED)
    assert done.returncode == 0, done
    assert done.stdout.splitlines()[0] == "NCCL INFO Init COMPLETE"
    assert [line for line in done.stdout.splitlines() if line in lines] == lines, "the log is printed"
    return [line for line in done.stdout.splitlines()[1:] if line not in lines]


@pytest.mark.parametrize(("rate", "tokens", "mfu"), [("400000", 400_000, "46.0"), ("1.2e+06", 1_200_000, "138.0")])
def test_prints_rate_and_mfu_of_each_update(tmp_path: Path, rate: str, tokens: int, mfu: str) -> None:
    (line,) = measured(tmp_path, "0", rate)
    assert line == f"throughput: {tokens} tokens/s, {tokens // 8} tokens/s/GPU, MFU {mfu} %"


def test_the_mean_excludes_the_first_updates(tmp_path: Path) -> None:
    *_, last = measured(tmp_path, "0", "1000", "2000", "3000", "300000", "500000")
    assert last == "mean of the last 2 updates: 400000 tokens/s, 50000 tokens/s/GPU, MFU 46.0 %"


def test_a_log_without_updates_has_no_mean(tmp_path: Path) -> None:
    assert measured(tmp_path) == []
