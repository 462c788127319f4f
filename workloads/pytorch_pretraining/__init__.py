"""Pre-trains decoder-only transformers with the project's own trainer, as a PyTorchJob of a team."""

from __future__ import annotations

from collections.abc import Iterable

import pulumi

from components.context import WorkloadContext
from config.problems.errors import Problem
from config.schema.models import Placement
from config.schema.workload import Candidate, GpuPods
from workloads._lib.app_wrapper import team_job
from workloads._lib.base import Deployed, Workload
from workloads._lib.data_check import check_data
from workloads._lib.results import Results
from workloads._lib.team_training import DATA
from workloads.pytorch_pretraining import manifests
from workloads.pytorch_pretraining.manifests import CONTAINER, Run
from workloads.pytorch_pretraining.memory import kept_bytes
from workloads.pytorch_pretraining.options import NAME, PretrainingOptions
from workloads.pytorch_pretraining.problems import problems


class PytorchPretraining(Workload[PretrainingOptions]):
    """A PyTorchJob in a team's queue, with or without an AppWrapper."""

    name = NAME
    options = PretrainingOptions
    pods = GpuPods(container=CONTAINER)
    keys = {"modelSize": "modelSize"}

    def problems(self, options: PretrainingOptions, candidate: Candidate) -> Iterable[Problem]:
        return problems(options, candidate)

    def deploy(self, context: WorkloadContext, placement: Placement[PretrainingOptions]) -> Deployed:
        """Creates the job, and its script and claim, which AppWrapper has no right to create."""
        options = placement.options
        shared_class = context.shared_class.name if context.shared_class else ""
        run = Run.in_team(context, placement, NAME, size=kept_bytes(options), shared_class=shared_class)
        files = manifests.files(run).deploy(context)
        words = ["python", "-m", "pretraining.token_files", DATA, str(options.vocabulary)]
        needed = [files, *check_data(NAME, run, words, context)]
        wrapper = manifests.wrapper_options(run) if options.app_wrapper else None
        team_job(NAME, run.name, manifests.pytorch_job(run), context, needed, wrapper=wrapper)
        results = Results.of(run, run.name, run.checkpoints)
        results.deploy(context)
        return Deployed(
            namespace=context.namespace,
            name=run.name,
            command=pulumi.Output.concat("kubectl logs -n ", context.namespace, f" {run.name}-master-0 -c {CONTAINER}"),
            more={"results": results.command(context.namespace, ["cat", f"{run.output}/metrics.jsonl"])},
            ends=not options.open_end,
        )


WORKLOAD = PytorchPretraining()
