"""Pre-trains AI2's open language models, OLMo, on their data from blob storage."""

from __future__ import annotations

from collections.abc import Iterable

import pulumi
import pulumi_kubernetes as kubernetes

from components.context import WorkloadContext
from config.problems.errors import Problem
from config.schema.models import Placement
from config.schema.workload import Candidate, GpuPods
from workloads._lib.base import Deployed, Workload
from workloads._lib.data_check import check_job
from workloads._lib.indexed_job import JOB_LABEL, indexed_job
from workloads._lib.pods import NOT_AWAITED, Manifest
from workloads.olmo import manifests, preparation
from workloads.olmo.manifests import Run
from workloads.olmo.options import NAME, OlmoOptions
from workloads.olmo.problems import problems

_FIRST_POD = f"{JOB_LABEL}={NAME},batch.kubernetes.io/job-completion-index=0"
"""Selector of rank 0's pod, the only one that logs steps."""


class Olmo(Workload[OlmoOptions]):
    """An Indexed Job with torchrun, and a Job that copies the training data."""

    name = NAME
    options = OlmoOptions
    pods = GpuPods(container=manifests.CONTAINER)

    def problems(self, options: OlmoOptions, candidate: Candidate) -> Iterable[Problem]:
        return problems(options, candidate)

    def deploy(self, context: WorkloadContext, placement: Placement[OlmoOptions]) -> Deployed:
        options = placement.options
        data, checkpoints = context.volumes[options.data_container], context.volumes[options.checkpoint_container]
        run = Run.placed(context, placement, "olmo", data=data, checkpoints=checkpoints)
        if options.prepare and run.data.upload_secret is not None:
            _prepare(preparation.job_spec(options, image=run.image, upload_secret=run.data.upload_secret), context)
        scripts = manifests.files(run.pool).deploy(context)
        needed = [scripts, _service(context)]
        if options.image:
            spec = preparation.check_spec(run)
            needed.append(check_job(preparation.CHECK, {"name": preparation.CHECK}, spec, context, scripts))
        indexed_job(NAME, manifests.job_spec(run), context, needed)
        return Deployed(
            namespace=context.namespace,
            name=NAME,
            command=pulumi.Output.concat("kubectl logs -n ", context.namespace, f" --follow --selector {_FIRST_POD}"),
            ends=not options.open_end,
        )


def _prepare(spec: Manifest, context: WorkloadContext) -> None:
    kubernetes.batch.v1.Job(
        preparation.JOB,
        metadata={"name": preparation.JOB, "namespace": context.namespace, "annotations": NOT_AWAITED},
        spec=spec,
        opts=context.child(
            depends_on=[preparation.files().deploy(context)],
            replace_on_changes=["spec"],
            delete_before_replace=True,
        ),
    )


def _service(context: WorkloadContext) -> pulumi.Resource:
    service: pulumi.Resource = kubernetes.core.v1.Service(
        NAME,
        metadata={"name": NAME, "namespace": context.namespace, "annotations": NOT_AWAITED},
        spec=manifests.service_spec(),
        opts=context.child(),
    )
    return service


WORKLOAD = Olmo()
