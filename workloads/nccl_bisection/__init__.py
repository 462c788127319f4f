"""Bisection of a pool's fabric by NCCL: which of its nodes, links and rails are slow?"""

from __future__ import annotations

from workloads.nccl_bisection.workload import NcclBisection

WORKLOAD = NcclBisection()
