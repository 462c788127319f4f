"""The job as plain data: pure functions of options and hardware."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pulumi

from components.context import GpuPool
from workloads._files import Files, shared
from workloads._mpi import MpiJob, mpi_files
from workloads._training import throughput_variables
from workloads.metaseq.arguments import training_arguments
from workloads.metaseq.options import MetaseqOptions
from workloads.metaseq.plan import Plan, plan
from workloads.metaseq.sizes import models

NAME = "metaseq"
_SCRIPTS = Path(__file__).parent / "scripts"
_ARGUMENTS = "arguments"  # one word of the command line per line, for train.sh


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run: where, on how much, with which options."""

    options: MetaseqOptions
    pool: GpuPool
    nodes: int
    image: str
    rdma_resource: str
    service_account: pulumi.Input[str]

    @property
    def plan(self) -> Plan:
        """How the model is trained there. Raises Unfit, which `problems` finds long before."""
        return plan(models().sizes[self.options.model_size], self.pool.sku, self.nodes)


def files(run: Run) -> Files:
    """The job's scripts, the training's command line, and NCCL's topology file where the VM size has one."""
    words = training_arguments(run.plan, run.options)
    arguments = {_ARGUMENTS: "".join(f"{word}\n" for word in words)}
    return mpi_files(NAME, _SCRIPTS, run.pool, {**shared("mfu.sh"), **arguments})


def job(run: Run) -> MpiJob:
    """The job. The switches do not reduce for it: trainings have failed with SHARP (NVIDIA/nccl#1709, #1219)."""
    return MpiJob(
        pool=run.pool,
        nodes=run.nodes,
        image=run.image,
        rdma_resource=run.rdma_resource,
        service_account=run.service_account,
        files=files(run),
        variables=throughput_variables(run.pool, run.nodes, run.plan.flops_per_token),
        sharp=False,
        ssh_timeout_seconds=run.options.ssh_timeout_seconds,
        overrides=run.options.pod_overrides,
    )
