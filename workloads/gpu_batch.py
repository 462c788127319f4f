"""A batch of pods that each load one GPU for a while. The pods wait for free GPUs, and share sliced GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import pulumi
from pydantic import Field

from components.context import WorkloadContext
from config.problems.errors import Problem
from config.problems.fixes import Path, set_command
from config.schema.base import PLAIN_DIGITS, Count
from config.schema.models import Placement
from config.schema.workload import Candidate, WorkloadOptions
from workloads._lib.base import Deployed, Run, Workload
from workloads._lib.indexed_job import JOB_LABEL, batch_job, batch_job_spec
from workloads._lib.pods import GpuPod, Manifest
from workloads._lib.training import usable_bytes

NAME = "gpu-batch"
LEAST_MEMORY_MB = 768
"""gpu-burn's minimum: three matrices of 8192 x 8192 floats (gpu_burn-drv.cpp at 0831a45, SIZE and initBuffers)."""


class GpuBatchOptions(WorkloadOptions):
    """Options, under `workloadOptions.gpu-batch`."""

    count: Annotated[int, Field(ge=1, le=100_000), PLAIN_DIGITS] = 10
    """Number of pods that must succeed; all may run at the same time.

    Kubernetes allows at most 100,000 in a Job that retries each index separately and lets all of them fail
    (pkg/apis/batch/validation/validation.go, completionsSoftLimit).
    """
    gpu_seconds: Count = 60
    """Seconds that each pod loads its GPU."""
    memory_mb: Annotated[int, Field(ge=LEAST_MEMORY_MB), PLAIN_DIGITS] = 1024
    """GPU memory of each pod, MB, at least 768; all pods on a GPU must fit."""
    retries: Annotated[int, Field(ge=0, le=100), PLAIN_DIGITS] = 3
    """Number of retries of a pod; evictions do not count."""

    @property
    def gpus_per_node(self) -> int:
        return 1


class GpuBatch(Workload[GpuBatchOptions]):
    """An Indexed Job without a gang: each pod runs as soon as a GPU is free."""

    name = NAME
    options = GpuBatchOptions

    def problems(self, options: GpuBatchOptions, candidate: Candidate) -> Iterator[Problem]:
        sharing = candidate.pool.gpus // candidate.pool.sku.gpus
        most = int(usable_bytes(candidate.pool.sku.gpu_memory_gb) / 2**20) // sharing  # gpu-burn's MB are MiB
        if options.memory_mb > most:
            path: Path = ("workloadOptions", NAME, "memoryMb")
            shared = f", and {sharing} pods share each GPU" if sharing > 1 else ""
            has = f"have {candidate.pool.sku.gpu_memory_gb} GB{shared}"
            what = f"is {options.memory_mb}, but GPUs of {candidate.pool.vm_sku} {has}"
            yield Problem(path, what, f"{LEAST_MEMORY_MB} to {most}", set_command(path, most))

    def deploy(self, context: WorkloadContext, placement: Placement[GpuBatchOptions]) -> Deployed:
        run = Run[GpuBatchOptions].placed(context, placement, "test-io")
        batch_job(NAME, job_spec(run), context, [])
        logs = pulumi.Output.concat("kubectl logs -n ", context.namespace, f" --selector {JOB_LABEL}={NAME} --tail 1")
        return Deployed(namespace=context.namespace, name=NAME, command=logs)


def job_spec(run: Run[GpuBatchOptions]) -> Manifest:
    options = run.options
    load = ["/bin/bash", "/opt/test-io/gpu-load.sh", str(options.gpu_seconds), str(options.memory_mb)]
    pod = GpuPod(
        pool=run.pool,
        rdma_resource=run.rdma_resource,
        container={"name": NAME, "image": run.image, "command": load},
        gpus=1,
        node_check=run.node_check,
        repeatable=True,
        overrides=options.pod_overrides,
    )
    return batch_job_spec(
        pod.template(),
        container=NAME,
        completions=options.count,
        parallelism=options.count,
        retries=options.retries,
    )


WORKLOAD = GpuBatch()
