"""The scripts that start the NCCL job's ranks and its workers, run as scripts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from simulator.host.paths import ROOT
from tests.units.workloads.nccl_output import ranks, row, table

SCRIPTS = ROOT / "workloads" / "nccl_allreduce" / "scripts"
SHARED = ROOT / "workloads" / "_mpi_scripts"


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """A folder of commands that stand in for those of the image."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


def command(folder: Path, name: str, body: str) -> None:
    (folder / name).write_text(f"#!/bin/bash\n{body}\n")
    (folder / name).chmod(0o755)


def launch(tmp_path: Path, commands: Path, hosts: str) -> subprocess.CompletedProcess[str]:
    """launch.sh with its host file moved to where a test may write."""
    (tmp_path / "hosts").write_text(hosts)
    script = (SHARED / "hosts.sh").read_text().replace("/etc/volcano/mpiworker.host", str(tmp_path / "hosts"))
    (tmp_path / "hosts.sh").write_text(script)
    for source in (SCRIPTS / "launch.sh", ROOT / "workloads" / "_scripts" / "verdict.sh"):
        (tmp_path / source.name).write_text(source.read_text())
    settings = {
        "NODES": "2", "GPUS_PER_NODE": "8", "CORES_PER_GPU": "12", "MIN_BYTES": "8M", "MAX_BYTES": "16G",
        "ITERATIONS": "20", "SSH_TIMEOUT_S": "1", "BUSBW_FLOOR_GBS": "400", "NCCL_DEBUG": "INFO", "UCX_TLS": "rc",
        "RESTART_WAIT_S": "0.1",
    }  # fmt: skip
    environment = {"PATH": f"{commands}:{os.environ['PATH']}", "TMPDIR": str(tmp_path), **settings}
    return subprocess.run(
        ["bash", str(tmp_path / "launch.sh")], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_launches_one_rank_per_gpu_with_the_environment(tmp_path: Path, commands: Path) -> None:
    command(commands, "ssh", "exit 0")
    (tmp_path / "output").write_text(ranks(*"aaaaaaaabbbbbbbb") + table(row(17179869184, 470, 476)))
    command(
        commands, "mpirun", f'echo "ARGS $*"; while [[ $1 != --hostfile ]]; do shift; done; cat "$2" {tmp_path}/output'
    )
    done = launch(tmp_path, commands, "job-mpiworker-0.job\njob-mpiworker-1.job")
    assert done.returncode == 0, done
    arguments = next(line for line in done.stdout.splitlines() if line.startswith("ARGS"))
    assert "-np 16 --map-by ppr:8:node:pe=12 --rank-by slot --bind-to core" in arguments
    assert "-x NCCL_DEBUG -x PATH -x UCX_TLS all_reduce_perf -b 8M -e 16G -f 2 -g 1 -n 20 -c 1" in arguments
    assert "job-mpiworker-0.job slots=8\njob-mpiworker-1.job slots=8\n" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("VERDICT: PASS")


def test_a_worker_that_never_answers_is_named(tmp_path: Path, commands: Path) -> None:
    command(commands, "ssh", '[[ "$*" != *mpiworker-1* ]]')
    done = launch(tmp_path, commands, "job-mpiworker-0.job\njob-mpiworker-1.job\n")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "VERDICT: FAIL no ssh to worker job-mpiworker-1.job within 1 s"


def test_too_few_hosts_are_refused(tmp_path: Path, commands: Path) -> None:
    done = launch(tmp_path, commands, "job-mpiworker-0.job\n")
    assert done.returncode == 1
    assert "names 1 workers instead of 2" in done.stdout


def test_a_failed_mpirun_fails(tmp_path: Path, commands: Path) -> None:
    command(commands, "ssh", "exit 0")
    command(commands, "mpirun", "echo broken >&2; exit 3")
    done = launch(tmp_path, commands, "a\nb\n")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "VERDICT: FAIL mpirun ended with exit code 3"


def test_a_job_that_has_lost_a_worker_may_be_begun_anew_before_it_fails(tmp_path: Path, commands: Path) -> None:
    """Volcano restarts it when that pod is deleted, but not once the master has failed."""
    command(commands, "ssh", f'[[ ! -e {tmp_path}/gone || "$*" != *mpiworker-1* ]]')
    command(commands, "mpirun", f"touch {tmp_path}/gone; exit 3")
    done = launch(tmp_path, commands, "job-mpiworker-0.job\njob-mpiworker-1.job\n")
    assert done.returncode == 1
    *_, waits, last = done.stdout.splitlines()
    assert waits.startswith("Worker job-mpiworker-1.job does not answer any more. If its pod is deleted within 0.1 s")
    assert last == "VERDICT: FAIL mpirun ended with exit code 3"


def test_the_worker_names_infiniband_ports_only(tmp_path: Path, commands: Path) -> None:
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
    for source in (SHARED / "worker.sh", ROOT / "workloads" / "_scripts" / "infiniband.sh"):
        script = source.read_text()
        for old, new in moved.items():
            script = script.replace(old, new)
        (tmp_path / source.name).write_text(script)
    environment = {"PATH": f"{commands}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", str(tmp_path / "worker.sh")], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert (tmp_path / "nccl.conf").read_text() == "NCCL_IB_HCA==mlx5_0:1,mlx5_1:1\n"
    assert done.stdout.splitlines()[-1] == "sshd -D -e"


def test_wrong_values_are_the_verdict_though_the_test_ends_with_an_error(tmp_path: Path, commands: Path) -> None:
    command(commands, "ssh", "exit 0")
    (tmp_path / "output").write_text(table(row(17179869184, 470, 476, wrong="2")))
    command(commands, "mpirun", f"cat {tmp_path}/output; exit 1")
    done = launch(tmp_path, commands, "a\nb\n")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("VERDICT: FAIL 4 wrong values in the results")
