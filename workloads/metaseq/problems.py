"""Checks of a model size and its placement, before deployment."""

from __future__ import annotations

from collections.abc import Iterator

from config.data.prices import by_price
from config.data.skus import VmSku, catalogue
from config.problems.errors import Problem
from config.problems.fixes import Path, by_hand, set_command
from config.schema.pools import gpu_sizes
from config.schema.workload import Candidate
from workloads.metaseq.options import NAME, MetaseqOptions
from workloads.metaseq.plan import Unfit, plan, usable_nodes
from workloads.metaseq.sizes import models

_SIZE: Path = ("workloadOptions", NAME, "modelSize")
_NODES: Path = ("workloadOptions", NAME, "numNodes")


def problems(options: MetaseqOptions, candidate: Candidate) -> Iterator[Problem]:
    sku = candidate.pool.sku
    try:
        plan(models().sizes[options.model_size], sku, candidate.nodes)
    except Unfit as reason:
        yield from _problems(options.model_size, str(reason), sku, candidate)


def _problems(size: str, reason: str, sku: VmSku, candidate: Candidate) -> Iterator[Problem]:
    """Yields the problem. The fix is the first that works: a node count in the pool, another model, more nodes, or
    another VM size.
    """
    nodes = usable_nodes(models().sizes[size], sku)
    others = [name for name, other in models().sizes.items() if candidate.nodes in usable_nodes(other, sku)]
    at_hand = [count for count in nodes if count <= candidate.pool.max_nodes]
    count = 0
    if counts := at_hand or (nodes if not others else []):
        count = min(counts, key=lambda count: abs(count - candidate.nodes))
        fix = set_command(_NODES, count)
    elif others:
        fix = set_command(_SIZE, others[-1])
    else:
        fix = by_hand((*candidate.pool_path, "vmSku"))
    able = [name for name in gpu_sizes() if usable_nodes(models().sizes[size], catalogue()[name])]
    here = f"numNodes {candidate.nodes} with {', '.join(others)}; " if others else ""
    there = f"numNodes {', '.join(map(str, nodes))}" if nodes else f"vmSku {by_price(able)}"
    yield Problem(_SIZE, f"is {size}, which {reason}", f"{here}{size} with {there}", fix)
    if count > candidate.pool.max_nodes:
        yield candidate.too_few(NAME, count)
