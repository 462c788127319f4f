"""NCCL all-reduce over every GPU of some nodes: is the fabric as fast as it must be, and is it used at all?"""

from __future__ import annotations

from workloads.nccl_allreduce.workload import NcclAllreduce

WORKLOAD = NcclAllreduce()
