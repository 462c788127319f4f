"""The job as plain data: pure functions of options and hardware."""

from __future__ import annotations

from pathlib import Path

from workloads._files import Files, shared
from workloads._mpi import MpiJob, MpiRun, mpi_files
from workloads._training import throughput_variables
from workloads.metaseq.arguments import training_arguments
from workloads.metaseq.options import NAME, MetaseqOptions
from workloads.metaseq.plan import Plan, plan
from workloads.metaseq.sizes import models

_SCRIPTS = Path(__file__).parent / "scripts"
_ARGUMENTS = "arguments"  # one word of the command line per line, for train.sh


class Run(MpiRun[MetaseqOptions]):
    """One run of a training."""

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
        run=run,
        files=files(run),
        variables=throughput_variables(run.pool, run.nodes, run.plan.flops_per_token),
        sharp=False,
    )
