"""Finds slow nodes, links and rails of a pool's fabric by bisection with NCCL."""

from __future__ import annotations

from collections.abc import Iterable

import pulumi

from components.context import WorkloadContext
from config.problems.errors import Problem
from config.schema.models import Placement
from config.schema.workload import Candidate, Requirements
from workloads._lib.base import Deployed, Workload
from workloads._lib.mpi import WORKERS
from workloads.nccl_bisection.manifests import Run, job
from workloads.nccl_bisection.options import NAME, NcclBisectionOptions, problems


class NcclBisection(Workload[NcclBisectionOptions]):
    """A Volcano job whose master measures parts of the pool until it knows which are slow."""

    name = NAME
    requires = Requirements(mpi=True, infiniband=True)
    options = NcclBisectionOptions
    pods = WORKERS

    def problems(self, options: NcclBisectionOptions, candidate: Candidate) -> Iterable[Problem]:
        return problems(options, candidate)

    def deploy(self, context: WorkloadContext, placement: Placement[NcclBisectionOptions]) -> Deployed:
        run = Run.placed(context, placement, "nccl-test", service_account=context.service_account)
        logs = job(run).deploy(NAME, context)
        picture = pulumi.Output.concat(logs, f" | python -m workloads.nccl_bisection >{NAME}.svg")
        return Deployed(namespace=context.namespace, name=NAME, command=logs, more={"picture": picture})


WORKLOAD = NcclBisection()
