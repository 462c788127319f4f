"""A batch of inference by vLLM, as a Job of a team."""

from __future__ import annotations

from collections.abc import Iterable

import pulumi
import pulumi_kubernetes as kubernetes

from components.context import SharedClass, WorkloadContext
from config.problems.errors import Problem
from config.schema.models import Placement
from config.schema.workload import GpuPods, Ground
from workloads._base import Deployed, Workload
from workloads._claims import kept_claim
from workloads._hugging_face import token_secret, warn_of_unknown
from workloads._pods import NOT_AWAITED
from workloads._results import Results
from workloads._team import WRAPPER_TYPE, name_of
from workloads.batch_inference import manifests
from workloads.batch_inference.manifests import GENERATOR, SERVER, Run
from workloads.batch_inference.options import NAME, BatchInferenceOptions
from workloads.batch_inference.problems import problems

_LEAST_GIB = 100
"""Of a share by NFS, and of a model of which nothing is known."""


class BatchInference(Workload[BatchInferenceOptions]):
    """A Job in a team's queue, wrapped or plain."""

    name = NAME
    options = BatchInferenceOptions
    pods = GpuPods(container=SERVER)

    def problems(self, options: BatchInferenceOptions, ground: Ground) -> Iterable[Problem]:
        """Team, queue and quota; model, token and length; hardware and memory; shared files."""
        return problems(options, ground)

    def deploy(self, context: WorkloadContext, placement: Placement[BatchInferenceOptions]) -> Deployed:
        """Scripts, token and claim beside the job, which AppWrapper's controller could not make."""
        options = placement.options
        shared = context.shared_class
        if shared is None:
            raise ValueError("the platform has no class of shared files, which `problems` demands long before")
        claim = shared.claim(manifests.claim_name(options.model))
        run = Run.placed(context, placement, "vllm-openai", name=name_of(NAME, context.prefix), claim=claim)
        warn_of_unknown(options.model)
        token = token_secret(NAME, run.name, options.hugging_face_token, context)
        _job(run, context, [manifests.files(run).deploy(context), _claim(run, shared, context), *token])
        results = Results.of(run, run.name, manifests.cache(run))
        results.deploy(context)
        return Deployed(
            namespace=context.namespace,
            name=run.name,
            command=pulumi.Output.concat("kubectl logs -n ", context.namespace, f" job/{run.name} -c {GENERATOR}"),
            more={"results": results.command(context.namespace, ["cat", run.result])},
        )


def _claim(run: Run, shared: SharedClass, context: WorkloadContext) -> pulumi.Resource:
    """Keeps the results, and the model for the next run. Another stack of the team may have made it."""
    model = run.options.facts
    gib = run.options.cache_gi or max(_LEAST_GIB, -(-3 * model.weight_bytes // 2**31) if model else 0)
    return kept_claim(
        f"{NAME}-cache",
        run.claim,
        shared.name,
        gib,
        context,
        awaited=False,
        size=("workloadOptions", NAME, "cacheGi"),
        after=shared.made,
    )


def _job(run: Run, context: WorkloadContext, needed: list[pulumi.Resource]) -> None:
    """It is replaced when it would be another, and deleted first because its name stays: after its pods have ended."""
    metadata = {"name": run.name, "namespace": context.namespace, "labels": manifests.labels(run)}
    opts = context.child(
        other_type="kubernetes:batch/v1:Job" if run.options.app_wrapper else WRAPPER_TYPE,
        depends_on=[*context.ready, *needed],
        replace_on_changes=["spec"],
        delete_before_replace=True,
    )
    if not run.options.app_wrapper:
        kubernetes.batch.v1.Job(
            NAME, metadata={**metadata, "annotations": NOT_AWAITED}, spec=manifests.job(run), opts=opts
        )
        return
    kubernetes.apiextensions.CustomResource(
        NAME,
        api_version="workload.codeflare.dev/v1beta2",
        kind="AppWrapper",
        metadata={**metadata, "annotations": manifests.wrapper_annotations(run)},
        spec=manifests.app_wrapper(run),
        opts=opts,
    )


WORKLOAD = BatchInference()
