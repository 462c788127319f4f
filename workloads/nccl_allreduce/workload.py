"""The workload as the program sees it."""

from __future__ import annotations

from typing import cast

import pulumi

from components.context import WorkloadContext
from config.models import Placement
from config.workload import Requirements, WorkloadOptions
from workloads._base import Deployed, Workload
from workloads._mpi import WORKERS
from workloads._volcano import volcano_job
from workloads.nccl_allreduce.manifests import Run, files, job_spec
from workloads.nccl_allreduce.options import NAME, NcclAllreduceOptions


class NcclAllreduce(Workload):
    """A Volcano job whose own script says whether it passed."""

    name = NAME
    requires = Requirements(infiniband=True)
    options = NcclAllreduceOptions
    pods = WORKERS

    def nodes(self, options: WorkloadOptions, pool_nodes: int) -> int:
        """`numNodes`, or all that the pool is certain to have."""
        return cast(NcclAllreduceOptions, options).num_nodes or pool_nodes

    def deploy(self, context: WorkloadContext, placement: Placement) -> Deployed:
        """Scripts and topology in a ConfigMap, and the job that mounts it."""
        run = Run.placed(context, placement, "nccl-test", service_account=context.service_account)
        volcano_job(NAME, job_spec(run), context=context, depends_on=[files(run.pool).deploy(context)])
        return Deployed(
            namespace=context.namespace,
            name=NAME,
            command=pulumi.Output.concat("kubectl logs -n ", context.namespace, f" {NAME}-mpimaster-0"),
        )
