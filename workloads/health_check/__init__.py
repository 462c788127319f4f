"""Runs Azure's health checks on every node, to find missing or slow hardware."""

from __future__ import annotations

from collections.abc import Iterator

import pulumi

from components.context import WorkloadContext
from config.problems.errors import Problem
from config.schema.models import Placement
from config.schema.workload import Candidate
from workloads._lib.base import Deployed, Workload
from workloads._lib.indexed_job import indexed_job
from workloads.health_check.idle import idle_checks
from workloads.health_check.manifests import Run, command, files, job_spec, job_without_devices
from workloads.health_check.options import NAME, HealthCheckOptions
from workloads.health_check.problems import problems


class HealthCheck(Workload[HealthCheckOptions]):
    """An Indexed Job with a pod on each node, which reports the node's health."""

    name = NAME
    options = HealthCheckOptions
    every_pool = True

    def nodes(self, options: HealthCheckOptions, pool_nodes: int) -> int:
        return len(options.node_names) or options.num_nodes or pool_nodes

    def problems(self, options: HealthCheckOptions, candidate: Candidate) -> Iterator[Problem]:
        return problems(options, candidate)

    def deploy(self, context: WorkloadContext, placement: Placement[HealthCheckOptions]) -> Deployed:
        run = Run.placed(context, placement, "aksnhc", name=placement.name, taint_effect=context.taint_effect)
        made = [files(run).deploy(context)]
        indexed_job(run.name, job_spec(run), context, made)
        if run.taint_effect:  # otherwise, pods may not read their node
            indexed_job(*job_without_devices(run), context, made)
        if run.options.idle_checks:
            idle_checks(run, context, made)
        shown = pulumi.Output.from_input(context.namespace).apply(lambda namespace: command(namespace, run.name))
        return Deployed(namespace=context.namespace, name=run.name, command=shown)


WORKLOAD = HealthCheck()
