"""Runs batch inference with vLLM, as a Job of a team."""

from __future__ import annotations

from collections.abc import Iterable

import pulumi

from components.context import SharedClass, WorkloadContext
from config.problems.errors import Problem
from config.schema.models import Placement
from config.schema.workload import Candidate, GpuPods
from workloads._lib.app_wrapper import team_job
from workloads._lib.base import Deployed, Workload
from workloads._lib.claims import kept_claim
from workloads._lib.hugging_face import token_secret, warn_of_unknown
from workloads._lib.results import Results
from workloads._lib.team import name_of
from workloads.batch_inference import manifests
from workloads.batch_inference.manifests import GENERATOR, SERVER, Run
from workloads.batch_inference.options import NAME, BatchInferenceOptions
from workloads.batch_inference.problems import problems

_LEAST_GIB = 100
"""The minimum size of an NFS share, also used for unknown models."""


class BatchInference(Workload[BatchInferenceOptions]):
    """A Job in a team's queue, with or without an AppWrapper."""

    name = NAME
    options = BatchInferenceOptions
    pods = GpuPods(container=SERVER)

    def problems(self, options: BatchInferenceOptions, candidate: Candidate) -> Iterable[Problem]:
        return problems(options, candidate)

    def deploy(self, context: WorkloadContext, placement: Placement[BatchInferenceOptions]) -> Deployed:
        """Creates the job, and its scripts, token and claim, which AppWrapper has no right to create."""
        options = placement.options
        shared = context.shared_class
        if shared is None:
            raise ValueError("the platform has no StorageClass of shared files")
        claim = shared.claim(manifests.claim_name(options.model))
        run = Run.placed(context, placement, "vllm-openai", name=name_of(NAME, context.prefix), claim=claim)
        warn_of_unknown(options.model)
        token = token_secret(NAME, run.name, options.hugging_face_token, context)
        needed = [manifests.files(run).deploy(context), _claim(run, shared, context), *token]
        wrapper = manifests.wrapper_options(run) if options.app_wrapper else None
        team_job(NAME, run.name, manifests.job(run), context, needed, wrapper=wrapper)
        results = Results.of(run, run.name, manifests.cache(run))
        results.deploy(context)
        return Deployed(
            namespace=context.namespace,
            name=run.name,
            command=pulumi.Output.concat("kubectl logs -n ", context.namespace, f" job/{run.name} -c {GENERATOR}"),
            more={"results": results.command(context.namespace, ["cat", run.result])},
        )


def _claim(run: Run, shared: SharedClass, context: WorkloadContext) -> pulumi.Resource:
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


WORKLOAD = BatchInference()
