"""Fine-tunes language models with LoRA and the project's own loop, as a RayJob of a team."""

from __future__ import annotations

from collections.abc import Iterable

import pulumi
import pulumi_kubernetes as kubernetes

from components.context import WorkloadContext
from config.problems.errors import Problem
from config.schema.models import Placement
from config.schema.workload import Candidate, GpuPods
from workloads._lib.base import Deployed, Workload
from workloads._lib.data_check import check_data
from workloads._lib.gang import gang
from workloads._lib.hugging_face import token_secret, warn_of_unknown
from workloads._lib.results import Results
from workloads._lib.team import QUEUED, name_of
from workloads._lib.team_training import DATA
from workloads.ray_finetuning import manifests
from workloads.ray_finetuning.manifests import DASHBOARD_PORT, WORKER, Run
from workloads.ray_finetuning.options import NAME, FinetuningOptions
from workloads.ray_finetuning.problems import problems


class RayFinetuning(Workload[FinetuningOptions]):
    name = NAME
    options = FinetuningOptions
    pods = GpuPods(container=WORKER)

    def problems(self, options: FinetuningOptions, candidate: Candidate) -> Iterable[Problem]:
        return problems(options, candidate)

    def deploy(self, context: WorkloadContext, placement: Placement[FinetuningOptions]) -> Deployed:
        options = placement.options
        name = name_of(NAME, context.prefix)
        token = token_secret(NAME, name, options.hugging_face_token, context)
        if not options.model.startswith(DATA):
            warn_of_unknown(options.model)
        run = Run.in_team(context, placement, NAME, size=0)  # checkpoints of LoRA are small
        data = check_data(NAME, run, ["python", "-m", "finetuning.lines", DATA], context)
        _job(run, context, [*token, *data])
        results = Results.of(run, run.name, run.checkpoints)
        results.deploy(context)
        within = pulumi.Output.concat("-n ", context.namespace)
        port = f" svc/{name}-head-svc {DASHBOARD_PORT}:{DASHBOARD_PORT}"
        return Deployed(
            namespace=context.namespace,
            name=name,
            command=pulumi.Output.concat("kubectl logs ", within, f" job/{name}"),
            more={
                "dashboard": pulumi.Output.concat("kubectl port-forward ", within, port),
                **_reading(run, results, context),
            },
        )


def _reading(run: Run, results: Results, context: WorkloadContext) -> dict[str, pulumi.Output[str]]:
    files = [f"{run.output}/{file}" for file in ("metrics.jsonl", "result.json")]
    adapter = ["tar", "c", "-C", run.output, "adapter", "|", "tar", "x"]
    return {
        "results": results.command(context.namespace, ["cat", *files]),
        "adapter": results.command(context.namespace, adapter),
    }


def _job(run: Run, context: WorkloadContext, needed: list[pulumi.Resource]) -> None:
    spec = manifests.ray_job(run)
    group = gang(NAME, name=run.name, pods=manifests.gang_pods(run), template=manifests.worker(run), context=context)
    kubernetes.apiextensions.CustomResource(
        NAME,
        api_version="ray.io/v1",
        kind="RayJob",
        metadata={"name": run.name, "namespace": context.namespace, "labels": QUEUED},
        spec=spec,
        opts=context.job([group, *needed]),
    )


WORKLOAD = RayFinetuning()
