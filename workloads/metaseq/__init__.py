"""Benchmarks training with Metaseq: a language model of 125 million to 175 billion parameters on synthetic data."""

from __future__ import annotations

from collections.abc import Iterable

import pulumi

from components.context import WorkloadContext
from config.problems.errors import Problem
from config.schema.models import Placement
from config.schema.workload import Candidate, Requirements
from workloads._lib.base import Deployed, Workload
from workloads._lib.mpi import WORKERS
from workloads.metaseq.manifests import AIM, TENSORBOARD, Run, job
from workloads.metaseq.options import NAME, MetaseqOptions
from workloads.metaseq.problems import problems


class Metaseq(Workload[MetaseqOptions]):
    """A Volcano job that trains on synthetic data."""

    name = NAME
    requires = Requirements(mpi=True, infiniband=True, one_node_without=True)
    options = MetaseqOptions
    pods = WORKERS
    keys = {"modelSize": "modelSize"}

    def problems(self, options: MetaseqOptions, candidate: Candidate) -> Iterable[Problem]:
        return problems(options, candidate)

    def deploy(self, context: WorkloadContext, placement: Placement[MetaseqOptions]) -> Deployed:
        run = Run.placed(context, placement, "metaseq", service_account=context.service_account)
        dashboards = {what: how for what, how in DASHBOARDS.items() if getattr(run.options, what)}
        return Deployed(
            namespace=context.namespace,
            name=NAME,
            command=job(run).deploy(NAME, context),
            ends=run.options.num_updates is not None,
            more={what: _dashboard(context.namespace, *how) for what, how in dashboards.items()},
        )


DASHBOARDS = {
    "aim": (f"aim up --repo {AIM} --port 43800", 43800),
    "tensorboard": (f"tensorboard --logdir {TENSORBOARD}0000 --port 6018", 6018),
}


def _dashboard(namespace: pulumi.Input[str], server: str, port: int) -> pulumi.Output[str]:
    pod = f"{NAME}-mpiworker-0"
    start = pulumi.Output.concat("kubectl exec -n ", namespace, f" {pod} -- {server} & ")
    return pulumi.Output.concat(start, "kubectl port-forward -n ", namespace, f" pod/{pod} {port}:{port}")


WORKLOAD = Metaseq()
