"""Options of the bisection, under `workloadOptions.nccl-bisection`, and their checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from config.problems.errors import Problem
from config.problems.fixes import Path, set_command
from config.schema.base import Count
from config.schema.workload import Candidate
from workloads._lib.mpi import MpiOptions

NAME = "nccl-bisection"
_NODES: Path = ("workloadOptions", NAME, "numNodes")
_FLOOR: Path = ("workloadOptions", NAME, "floorGbs")
LEAST = 2


class NcclBisectionOptions(MpiOptions):
    """Options of the bisection."""

    num_nodes: Count | None = None
    """Number of nodes to search, at least 2; by default the pool's `count` or `autoscale.min`."""
    floor_gbs: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Minimum bus bandwidth of good nodes, with all GPUs and without SHARP, GB/s; by default the value for the VM size.

    The floor of a rail is an equal share of this floor.
    """


def problems(options: NcclBisectionOptions, candidate: Candidate) -> Iterator[Problem]:
    if options.num_nodes is not None and options.num_nodes < LEAST:
        what = f"is {options.num_nodes}, but a single node uses no link: NVLink carries all of its traffic"
        allowed = f"{LEAST} or more; with two nodes, the search cannot identify the slow node"
        yield Problem(_NODES, what, allowed, set_command(_NODES, LEAST))
    elif candidate.nodes < LEAST:
        yield candidate.too_few(NAME, LEAST)
    known, count = candidate.pool.sku.nccl_busbw, max(candidate.nodes, LEAST)
    if known is None or options.floor_gbs is None:
        return
    healthy, floor = (each.at(count, sharp=False) for each in (known.healthy, known.floor))
    if options.floor_gbs > healthy:
        size = candidate.pool.sku.name
        what = f"is {options.floor_gbs:g}, but a healthy fabric of {size} without SHARP reaches {healthy:g} GB/s"
        yield Problem(_FLOOR, what, f"at most {healthy:g}; by default {floor:g}", set_command(_FLOOR, f"{floor:g}"))
