"""Implements the template `metaseq`: each scenario is a training on all GPUs of a node, with inputs and an output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from components.context import GpuPool
from config.data.near import hint, near
from config.problems.errors import Problem
from config.problems.fixes import Path, either_by_hand, path_text, remove_command, set_command
from config.schema.pools import PoolSettings
from config.schema.workload import Candidate
from workloads._lib.files import Files
from workloads._lib.mpi import MpiJob
from workloads.metaseq.manifests import Run, job
from workloads.metaseq.options import MetaseqOptions
from workloads.metaseq.plan import Unfit, plan, usable_nodes
from workloads.metaseq.sizes import ModelSize, models
from workloads.resim.options import NAME, MetaseqTemplate

TEMPLATE = "metaseq"
_OPTIONS: Path = ("workloadOptions", NAME, "metaseq")
_POOL: Path = (*_OPTIONS, "pool")
_SIZE: Path = (*_OPTIONS, "modelSize")


def training(options: MetaseqTemplate, pool: GpuPool, image: str, rdma_resource: str) -> MpiJob:
    of_job = MetaseqOptions(model_size=options.model_size, num_updates=options.num_updates)
    return job(Run(options=of_job, pool=pool, nodes=1, image=image, rdma_resource=rdma_resource, service_account=""))


def files(of_training: MpiJob, scenario: Files) -> Files:
    contents = {**of_training.files.contents, **scenario.contents}
    return replace(scenario, config_map=f"{NAME}-{TEMPLATE}", contents=contents)


def problems(options: MetaseqTemplate, candidate: Candidate) -> Iterator[Problem]:
    key, size = options.pool or candidate.pool_key, models().sizes[options.model_size]
    pool = candidate.pools.get(key)
    if pool is None:
        likely = near(key, candidate.pools)
        what = f"is {key!r}, not a pool of this stack{hint(likely)}"
        yield Problem(_POOL, what, ", ".join(candidate.pools), set_command(_POOL, [*likely, *candidate.pools][0]))
        return
    if pool.mig_profile:
        where = ("pools", key, "migProfile")
        what = f"partitions the GPUs, but trainings of workload {NAME} need whole GPUs"
        fix = either_by_hand(where, f"set {path_text(_POOL)} to a pool of whole GPUs")
        yield Problem(where, what, "no value, or a pool of whole GPUs for the trainings", fix)
    try:
        plan(size, pool.sku, nodes=1)
    except Unfit as reason:
        fit = [name for name, other in models().sizes.items() if _trains(other, pool)]
        better = [name for name, other in candidate.pools.items() if _trains(size, other)]
        fix = set_command(_SIZE, fit[-1]) if fit else remove_command(_OPTIONS)
        allowed = ", ".join([*fit, *(f"{options.model_size} on pool {name}" for name in better)])
        what = f"is {options.model_size}, which {reason}"
        yield Problem(
            _SIZE,
            what,
            allowed or f"no value, because pool {key} cannot train any size",
            set_command(_POOL, better[0]) if better else fix,
        )


def _trains(size: ModelSize, pool: PoolSettings) -> bool:
    return not pool.mig_profile and 1 in usable_nodes(size, pool.sku)
