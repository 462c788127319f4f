"""The job as plain data: pure functions of options and hardware."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pulumi

from components.context import GpuPool
from workloads._files import Files, texts, topology_file
from workloads._nccl import nccl_variables
from workloads._pods import GpuPod, Manifest, environment
from workloads._volcano import master_template, mpi_job_spec
from workloads.nccl_allreduce.options import NcclAllreduceOptions

NAME = "nccl-allreduce"
_FOLDER = "/opt/nccl-allreduce"
_SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run: where, on how much, with which options."""

    options: NcclAllreduceOptions
    pool: GpuPool
    nodes: int
    image: str
    rdma_resource: str
    service_account: pulumi.Input[str]


def files(pool: GpuPool) -> Files:
    """The job's scripts, and NCCL's topology file where the VM size has one."""
    return Files(config_map=NAME, folder=_FOLDER, contents={**texts(_SCRIPTS, "*.sh"), **topology_file(pool)})


def floor_gbs(run: Run) -> float:
    """The least bus bandwidth that passes, GB/s. Raises ValueError where neither options nor catalogue have one."""
    floor = run.options.floor_gbs or run.pool.sku.busbw_floor(run.nodes, sharp=run.options.sharp)
    if floor is None:
        raise ValueError(f"no bus bandwidth is known for {run.pool.sku.name}: set workloadOptions.{NAME}.floorGbs")
    return floor


def variables(run: Run) -> dict[str, str]:
    """Environment of the master; launch.sh hands NCCL's and UCX's part of it to the ranks."""
    sku = run.pool.sku
    return {
        **nccl_variables(run.pool, files(run.pool), sharp=run.options.sharp),
        "NODES": str(run.nodes),
        "GPUS_PER_NODE": str(sku.gpus),
        "CORES_PER_GPU": str(sku.vcpus // sku.gpus),
        "MIN_BYTES": run.options.min_bytes,
        "MAX_BYTES": run.options.max_bytes,
        "ITERATIONS": str(run.options.iterations),
        "SSH_TIMEOUT_S": str(run.options.ssh_timeout_seconds),
        "BUSBW_FLOOR_GBS": f"{floor_gbs(run):g}",
    }


def job_spec(run: Run) -> Manifest:
    """The Volcano Job."""
    mounts = [files(run.pool).mount()]
    worker = GpuPod(
        pool=run.pool,
        rdma_resource=run.rdma_resource,
        container=_container(run, "worker.sh"),
        mounts=mounts,
        overrides=run.options.pod_overrides,
    )
    master = _container(run, "launch.sh") | {"env": environment(variables(run))}
    return mpi_job_spec(
        workers=run.nodes,
        worker=worker.template(),
        master=master_template(master, service_account=run.service_account, mounts=mounts),
    )


def _container(run: Run, script: str) -> Manifest:
    return {"name": script.removesuffix(".sh"), "image": run.image, "command": ["/bin/bash", f"{_FOLDER}/{script}"]}
