"""MPI jobs on Volcano: one worker on each of some whole nodes, and a master that runs a program once for every GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pulumi

from components.context import GpuPool
from workloads._files import Files, shared, texts, topology_file
from workloads._nccl import nccl_variables
from workloads._pods import GpuPod, Manifest, environment
from workloads._volcano import master_template, mpi_job_spec

_MPI_SCRIPTS = Path(__file__).parent / "_mpi_scripts"
_LAUNCH, _WORKER = "launch.sh", "worker.sh"


@dataclass(frozen=True, kw_only=True)
class MpiJob:
    """One such job."""

    pool: GpuPool
    nodes: int
    image: str
    rdma_resource: str
    service_account: pulumi.Input[str]
    files: Files
    """Made by `mpi_files`."""
    variables: Mapping[str, str]
    """Environment of launch.sh, beside that of NCCL and what hosts.sh reads."""
    sharp: bool
    """Let the InfiniBand switches reduce."""
    ssh_timeout_seconds: int
    """How long the master waits for all workers to answer."""
    overrides: Manifest
    """The workload's `podOverrides`: of the workers, which are the pods on GPU nodes."""

    def environment(self) -> dict[str, str]:
        """All variables of the master; hosts.sh hands those of NCCL and UCX to the ranks."""
        sku = self.pool.sku
        return {
            **nccl_variables(self.pool, self.files, sharp=self.sharp),
            "NODES": str(self.nodes),
            "GPUS_PER_NODE": str(sku.gpus),
            "CORES_PER_GPU": str(sku.vcpus // sku.gpus),
            "SSH_TIMEOUT_S": str(self.ssh_timeout_seconds),
            **self.variables,
        }

    def spec(self) -> Manifest:
        """The spec of the Volcano Job."""
        mounts = [self.files.mount()]
        worker = GpuPod(
            pool=self.pool,
            rdma_resource=self.rdma_resource,
            container=self._container(_WORKER),
            mounts=mounts,
            overrides=self.overrides,
        )
        master = self._container(_LAUNCH) | {"env": environment(self.environment())}
        return mpi_job_spec(
            workers=self.nodes,
            worker=worker.template(),
            master=master_template(master, service_account=self.service_account, mounts=mounts),
        )

    def _container(self, script: str) -> Manifest:
        command = ["/bin/bash", self.files.path(script)]
        return {"name": script.removesuffix(".sh"), "image": self.image, "command": command}


def mpi_files(name: str, scripts: Path, pool: GpuPool, more: Mapping[str, str] | None = None) -> Files:
    """The ConfigMap of such a job: its own scripts, launch.sh among them, those that all share, and NCCL's topology."""
    of_all = {**texts(_MPI_SCRIPTS, "*.sh"), **shared("infiniband.sh")}
    contents = {**of_all, **texts(scripts, "*.sh"), **topology_file(pool), **(more or {})}
    return Files(config_map=name, folder=f"/opt/{name}", contents=contents)
