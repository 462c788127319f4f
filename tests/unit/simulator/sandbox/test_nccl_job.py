from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulator.world.faults import new_fault
from tests.unit.simulator.sandbox.mpi_pods import NcclJob
from tests.unit.simulator.sandbox.sandboxes import node_name

Run = tuple[int, str]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return NcclJob(tmp_path_factory.mktemp("healthy")).run()


def assert_passes(run: Run) -> None:
    code, log = run
    assert code == 0, log
    assert "VERDICT: PASS" in log
    assert "[7]mlx5_7:1/IB" in log
    assert "mlx5_8" not in log
    assert log.rstrip().endswith("transport=NET/IB")


Damage = Callable[[NcclJob], object]


def _fault(*fault: Any) -> Damage:
    return lambda job: job.faults.append(new_fault(*fault))


def _env(**variables: str) -> Damage:
    def act(job: NcclJob) -> None:
        for name, value in variables.items():
            job.set_env(name, value)

    return act


def _no_ipc_lock(job: NcclJob) -> None:
    del job.worker["spec"]["containers"][0]["securityContext"]


def _small_shared_memory(job: NcclJob) -> None:
    job.worker["spec"]["volumes"] = [volume for volume in job.worker["spec"]["volumes"] if volume["name"] != "shm"]


def _no_worker(job: NcclJob) -> None:
    job.absent_workers = {1}
    job.set_env("SSH_TIMEOUT_S", "3")


BROKEN: dict[str, tuple[Damage, str]] = {
    "slow link": (_fault("link", node_name(1), "mlx5_3", 100), "VERDICT: FAIL bus bandwidth is below the floor"),
    "port down": (_fault("hca", node_name(0), "mlx5_5"), "VERDICT: FAIL bus bandwidth is below the floor"),
    "two partitions": (_fault("partition", node_name(1)), "with status=12"),
    "lost GPU": (_fault("gpu", node_name(0), "6"), "Test CUDA failure"),
    "no RDMA": (lambda job: setattr(job, "rdma", False), "VERDICT: FAIL NCCL fell back to TCP"),
    "no IPC_LOCK": (_no_ipc_lock, "Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory"),
    "small shared memory": (_small_shared_memory, "No space left on device"),
    "fewer GPUs": (lambda job: setattr(job, "gpus_allocated", 4), "invalid device ordinal"),
    "no worker": (_no_worker, "VERDICT: FAIL no ssh to worker nccl-allreduce-mpiworker-1.nccl-allreduce"),
    "wrong interface": (_env(NCCL_SOCKET_IFNAME="ens3"), "no socket interface found for ens3"),
    "impossible algorithm": (
        _env(NCCL_COLLNET_ENABLE="0", NCCL_ALGO="CollnetChain,NVLS"),
        "no algorithm/protocol available for function AllReduce",
    ),
    "no topology file": (lambda job: job.files.pop("topology.xml"), "Could not open XML topology file"),
    "broken topology file": (lambda job: job.files.update({"topology.xml": "<system><cpu>"}), "XML parse error"),
}


def test_healthy_fabric_passes(healthy: Run) -> None:
    assert_passes(healthy)


def test_healthy_fabric_of_three_a100_nodes_passes(tmp_path: Path) -> None:
    assert_passes(NcclJob(tmp_path, sku="Standard_ND96asr_v4", nodes=3).run())


def test_the_first_collective_creates_channels_with_the_plugin_of_sharp(healthy: Run) -> None:
    """NCCL 2.28.9 with nccl-tests 2.19.6 on two H200 logs them between column names and first row."""
    _, log = healthy
    assert "via NET/IBext_v10/7/GDRDMA" in log
    assert "[send] via COLLNET/SHARP/7/GDRDMA" in log
    marks = ("Init START", "Init COMPLETE", " redop ", "[send] via NET/", "Connected all rings", "     float     sum ")
    places = [log.index(mark) for mark in marks]
    assert places == sorted(places)
    assert log.rindex("Init COMPLETE") < log.index(" redop ")


@pytest.mark.parametrize("damage", BROKEN)
def test_a_fault_fails_the_job(tmp_path: Path, damage: str) -> None:
    act, expected = BROKEN[damage]
    job = NcclJob(tmp_path)
    act(job)
    code, log = job.run()
    assert code != 0, log
    assert expected in log
    assert "VERDICT: FAIL" in log


@pytest.mark.parametrize(("rdma", "text"), [(True, "busbw=47"), (False, "Using network Socket")])
def test_one_node_needs_no_network(tmp_path: Path, rdma: bool, text: str) -> None:
    """Without InfiniBand, NCCL logs TCP without using it."""
    code, log = NcclJob(tmp_path, nodes=1, rdma=rdma).run()
    assert code == 0, log
    assert text in log
    assert log.rstrip().endswith("transport=P2P")


def test_the_floor_is_lower_without_sharp(tmp_path: Path) -> None:
    code, log = NcclJob(tmp_path, options={"sharp": False}).run()
    assert code == 0, log
    assert "/SHARP" not in log
    assert "via NET/IB/7/GDRDMA" in log
    assert "floor=360" in log
