"""The workload as the program sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

import pulumi

from components.context import WorkloadContext
from config.errors import Problem
from config.models import Placement
from config.workload import Ground, Requirements, WorkloadOptions
from workloads._base import Deployed
from workloads._indexed_job import indexed_job
from workloads.health_check.manifests import NAME, Run, command, files, job_spec
from workloads.health_check.options import HealthCheckOptions


@dataclass(frozen=True)
class HealthCheck:
    """An Indexed Job whose pods each say whether their node is well."""

    name: str = NAME
    requires: Requirements = Requirements()
    options: type[WorkloadOptions] = HealthCheckOptions
    keys: Mapping[str, str] = field(default_factory=dict)

    def nodes(self, options: WorkloadOptions, pool_nodes: int) -> int:
        """`numNodes`, or all of the pool."""
        return cast(HealthCheckOptions, options).num_nodes or pool_nodes

    def problems(self, options: WorkloadOptions, ground: Ground) -> Iterable[Problem]:
        """None: every VM size with GPUs has something to check."""
        return ()

    def deploy(self, context: WorkloadContext, placement: Placement) -> Deployed:
        """The checks in a ConfigMap, and the job that mounts it."""
        options = cast(HealthCheckOptions, placement.options)
        run = Run(
            options=options,
            pool=context.pools[placement.pool_key],
            nodes=placement.nodes,
            image=options.image or context.image("aksnhc"),
            rdma_resource=context.rdma_resource,
        )
        indexed_job(NAME, job_spec(run), context, [files(run).deploy(context)])
        namespace = pulumi.Output.from_input(context.namespace)
        return Deployed(namespace=namespace, name=pulumi.Output.from_input(NAME), command=namespace.apply(command))
