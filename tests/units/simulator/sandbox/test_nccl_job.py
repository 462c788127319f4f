"""The NCCL job's real scripts in real sandboxes: it passes when all is well, and fails for each thing that is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simulator.sandbox import sandbox
from simulator.world.faults import new_fault
from tests.units.simulator.sandbox.job import Job, NcclJob, node_name


@pytest.fixture(scope="module", autouse=True)
def _needs_sandbox() -> None:
    assert sandbox.available() is None


Run = tuple[int, str]
"""Exit code and log."""


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two nodes of H100 on which nothing is wrong."""
    return NcclJob(tmp_path_factory.mktemp("healthy")).run()


def passes(run: Run) -> None:
    code, log = run
    assert code == 0, log
    assert "VERDICT: PASS" in log
    assert "[7]mlx5_7:1/IB" in log
    assert "mlx5_8" not in log, "the Ethernet function is not for NCCL"
    assert log.rstrip().endswith("transport=NET/IB")


def _container(job: Job) -> dict[str, object]:
    container: dict[str, object] = job.worker["spec"]["containers"][0]
    return container


def _slow_link(job: Job) -> None:
    job.faults.append(new_fault("link", node_name(1), "mlx5_3", 100))


def _port_down(job: Job) -> None:
    job.faults.append(new_fault("hca", node_name(0), "mlx5_5"))


def _two_partitions(job: Job) -> None:
    job.faults.append(new_fault("partition", node_name(1)))


def _lost_gpu(job: Job) -> None:
    job.faults.append(new_fault("gpu", node_name(0), "6"))


def _no_rdma(job: Job) -> None:
    job.rdma = False


def _no_ipc_lock(job: Job) -> None:
    del _container(job)["securityContext"]


def _small_shared_memory(job: Job) -> None:
    job.worker["spec"]["volumes"] = [volume for volume in job.worker["spec"]["volumes"] if volume["name"] != "shm"]


def _fewer_gpus(job: Job) -> None:
    job.gpus_allocated = 4


def _no_worker(job: Job) -> None:
    job.absent_workers = {1}
    job.set_env("SSH_TIMEOUT_S", "3")


def _wrong_interface(job: Job) -> None:
    job.set_env("NCCL_SOCKET_IFNAME", "ens3")


def _impossible_algorithm(job: Job) -> None:
    job.set_env("NCCL_COLLNET_ENABLE", "0")
    job.set_env("NCCL_ALGO", "CollnetChain,NVLS")


def _no_topology_file(job: Job) -> None:
    del job.files["topology.xml"]


def _broken_topology_file(job: Job) -> None:
    job.files["topology.xml"] = "<system><cpu>"


BROKEN: list[tuple[Callable[[Job], None], str]] = [
    (_slow_link, "VERDICT: FAIL bus bandwidth is below the floor"),
    (_port_down, "VERDICT: FAIL bus bandwidth is below the floor"),
    (_two_partitions, "with status=12"),
    (_lost_gpu, "Test CUDA failure"),
    (_no_rdma, "VERDICT: FAIL NCCL fell back to TCP"),
    (_no_ipc_lock, "Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory"),
    (_small_shared_memory, "No space left on device"),
    (_fewer_gpus, "invalid device ordinal"),
    (_no_worker, "VERDICT: FAIL no ssh to worker nccl-allreduce-mpiworker-1.nccl-allreduce"),
    (_wrong_interface, "no socket interface found for ens3"),
    (_impossible_algorithm, "no algorithm/protocol available for function AllReduce"),
    (_no_topology_file, "Could not open XML topology file"),
    (_broken_topology_file, "XML parse error"),
]


def test_healthy_fabric_passes(healthy: Run) -> None:
    passes(healthy)


def test_healthy_fabric_of_three_a100_nodes_passes(tmp_path: Path) -> None:
    passes(NcclJob(tmp_path, sku="Standard_ND96asr_v4", nodes=3).run())


def test_sharp_brings_an_infiniband_of_its_own(healthy: Run) -> None:
    _, log = healthy
    assert "via NET/IBext_v10/7/GDRDMA" in log
    assert "[send] via COLLNET/SHARP/7/GDRDMA" in log


def test_channels_are_made_by_the_first_collective(healthy: Run) -> None:
    """The order of NCCL 2.28.9 with nccl-tests 2.19.6 on two H200: between the columns' names and the first row."""
    _, log = healthy
    marks = ("Init START", "Init COMPLETE", " redop ", "[send] via NET/", "Connected all rings", "     float     sum ")
    places = [log.index(mark) for mark in marks]
    assert places == sorted(places)
    assert log.rindex("Init COMPLETE") < log.index(" redop ")


@pytest.mark.parametrize(("damage", "expected"), BROKEN, ids=[damage.__name__.strip("_") for damage, _ in BROKEN])
def test_what_breaks_it(tmp_path: Path, damage: Callable[[Job], None], expected: str) -> None:
    job = NcclJob(tmp_path)
    damage(job)
    code, log = job.run()
    assert code != 0, log
    assert expected in log
    assert "VERDICT: FAIL" in log


def test_one_node_needs_no_network(tmp_path: Path) -> None:
    code, log = NcclJob(tmp_path, nodes=1).run()
    assert code == 0, log
    assert "busbw=47" in log
    assert log.rstrip().endswith("transport=P2P")


def test_on_one_node_without_infiniband_nccl_names_tcp_and_does_not_use_it(tmp_path: Path) -> None:
    job = NcclJob(tmp_path, nodes=1)
    job.rdma = False
    code, log = job.run()
    assert code == 0, log
    assert "Using network Socket" in log
    assert log.rstrip().endswith("transport=P2P")


def test_without_sharp_the_floor_is_lower(tmp_path: Path) -> None:
    code, log = NcclJob(tmp_path, options={"sharp": False}).run()
    assert code == 0, log
    assert "/SHARP" not in log
    assert "via NET/IB/7/GDRDMA" in log
    assert "floor=360" in log
