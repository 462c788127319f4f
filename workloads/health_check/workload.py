"""The workload as the program sees it."""

from __future__ import annotations

import pulumi

from components.context import WorkloadContext
from config.schema.models import Placement
from workloads._base import Deployed, Workload
from workloads._indexed_job import indexed_job
from workloads.health_check.manifests import Run, command, files, job_spec
from workloads.health_check.options import NAME, HealthCheckOptions


class HealthCheck(Workload[HealthCheckOptions]):
    """An Indexed Job whose pods each say whether their node is well."""

    name = NAME
    options = HealthCheckOptions
    every_pool = True

    def nodes(self, options: HealthCheckOptions, pool_nodes: int) -> int:
        """`numNodes`, or all that the pool is certain to have."""
        return options.num_nodes or pool_nodes

    def deploy(self, context: WorkloadContext, placement: Placement[HealthCheckOptions]) -> Deployed:
        """The checks in a ConfigMap, and the job that mounts it."""
        run = Run.placed(context, placement, "aksnhc", name=placement.name)
        indexed_job(run.name, job_spec(run), context, [files(run).deploy(context)])
        shown = pulumi.Output.from_input(context.namespace).apply(lambda namespace: command(namespace, run.name))
        return Deployed(namespace=context.namespace, name=run.name, command=shown)
