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
from workloads._volcano import volcano_job
from workloads.nccl_allreduce.manifests import NAME, Run, files, job_spec
from workloads.nccl_allreduce.options import NcclAllreduceOptions


@dataclass(frozen=True)
class NcclAllreduce:
    """A Volcano job whose own script says whether it passed."""

    name: str = NAME
    requires: Requirements = Requirements(infiniband=True)
    options: type[WorkloadOptions] = NcclAllreduceOptions
    keys: Mapping[str, str] = field(default_factory=dict)

    def nodes(self, options: WorkloadOptions, pool_nodes: int) -> int:
        """`numNodes`, or all of the pool."""
        return cast(NcclAllreduceOptions, options).num_nodes or pool_nodes

    def problems(self, options: WorkloadOptions, ground: Ground) -> Iterable[Problem]:
        """None: what it needs stands in `requires`."""
        return ()

    def deploy(self, context: WorkloadContext, placement: Placement) -> Deployed:
        """Scripts and topology in a ConfigMap, and the job that mounts it."""
        options = cast(NcclAllreduceOptions, placement.options)
        run = Run(
            options=options,
            pool=context.pools[placement.pool_key],
            nodes=placement.nodes,
            image=options.image or context.image("nccl-test"),
            rdma_resource=context.rdma_resource,
            service_account=context.service_account,
        )
        config_map = files(run.pool).deploy(context)
        job = volcano_job(NAME, job_spec(run), context=context, depends_on=[config_map])
        namespace = pulumi.Output.from_input(context.namespace)
        return Deployed(
            namespace=namespace,
            name=job.id.apply(lambda found: found.rpartition("/")[2]),
            command=pulumi.Output.concat("kubectl logs -n ", namespace, f" {NAME}-mpimaster-0"),
        )
