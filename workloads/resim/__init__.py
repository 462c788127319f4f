"""Runs resimulation: a batch of scenarios, each an index of a Job, that continues after evictions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pulumi
import pulumi_kubernetes as kubernetes

from components.context import WorkloadContext
from config.problems.errors import Problem
from config.schema.models import Placement
from config.schema.workload import Candidate
from workloads._lib.base import Deployed, Workload
from workloads._lib.indexed_job import batch_job
from workloads._lib.pods import Manifest
from workloads.resim import manifests, metaseq
from workloads.resim.manifests import OWNER, TEMPLATES, TEST_IO, Batch, Run
from workloads.resim.options import NAME, ResimOptions
from workloads.resim.problems import problems


class Resim(Workload[ResimOptions]):
    """The templates of batches, and the stack's own batch."""

    name = NAME
    options = ResimOptions

    def problems(self, options: ResimOptions, candidate: Candidate) -> Iterable[Problem]:
        return problems(options, candidate)

    def deploy(self, context: WorkloadContext, placement: Placement[ResimOptions]) -> Deployed:
        options = placement.options
        run = Run.placed(
            context,
            placement,
            TEST_IO,
            others=tuple(context.pools[key] for key in options.other_pools),
            inputs=context.volumes[options.input_container],
            outputs=context.volumes[options.output_container],
        )
        loads = {TEST_IO: manifests.load_of_options(run)}
        if own := options.metaseq:
            image = context.image(metaseq.TEMPLATE)
            of_scenario = metaseq.training(own, context.pools[own.pool or placement.pool_key], image, run.rdma_resource)
            loads[metaseq.TEMPLATE] = manifests.load_of_training(options, of_scenario)
        scripts = [load.files.deploy(context) for load in loads.values()]
        made_of = {name: manifests.blueprint(run, load) for name, load in loads.items()}
        _templates(made_of, context, scripts)
        _owner(context)
        batch = Batch(NAME)
        spec = manifests.job_spec(made_of[TEST_IO], batch, options.count)
        batch_job(NAME, spec, context, scripts[:1], batch.labels)
        return Deployed(
            namespace=context.namespace,
            name=NAME,
            command=pulumi.Output.from_input("python -m workloads.resim status resim"),
        )


def _owner(context: WorkloadContext) -> None:
    """Creates the owner of batches' Jobs. It is separate from the templates, so that batches survive their change."""
    about = "Owns the Jobs of submitted batches, which are deleted with it, before volumes, nodes and namespace."
    kubernetes.core.v1.ConfigMap(
        OWNER,
        metadata={"name": OWNER, "namespace": context.namespace, "annotations": {"kubernetes.io/description": about}},
        opts=context.child(depends_on=context.ready),
    )


def _templates(made_of: Mapping[str, Manifest], context: WorkloadContext, needs: Sequence[pulumi.Resource]) -> None:
    kubernetes.core.v1.ConfigMap(
        TEMPLATES,
        metadata={"name": TEMPLATES, "namespace": context.namespace},
        data={f"{name}.json": pulumi.Output.json_dumps(each, sort_keys=True) for name, each in made_of.items()},
        opts=context.child(depends_on=needs),
    )


WORKLOAD = Resim()
