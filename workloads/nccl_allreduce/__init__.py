"""Runs NCCL all-reduce over every GPU of several nodes, to check that the fabric is used and fast enough."""

from __future__ import annotations

from components.context import WorkloadContext
from config.schema.models import Placement
from config.schema.workload import Requirements
from workloads._lib.base import Deployed, Workload
from workloads._lib.mpi import WORKERS
from workloads.nccl_allreduce.manifests import Run, job
from workloads.nccl_allreduce.options import NAME, NcclAllreduceOptions


class NcclAllreduce(Workload[NcclAllreduceOptions]):
    """A Volcano job. Its script reports whether the bus bandwidth passes."""

    name = NAME
    requires = Requirements(mpi=True, infiniband=True)
    options = NcclAllreduceOptions
    pods = WORKERS

    def deploy(self, context: WorkloadContext, placement: Placement[NcclAllreduceOptions]) -> Deployed:
        run = Run.placed(context, placement, "nccl-test", service_account=context.service_account)
        return Deployed(namespace=context.namespace, name=NAME, command=job(run).deploy(NAME, context))


WORKLOAD = NcclAllreduce()
