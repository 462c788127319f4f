"""Checks of nodes before jobs begin there: where one could not be, or would help nobody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from config.problems.errors import Problem
from config.problems.fixes import Path, set_command
from config.schema.models import Placement, StackFile
from config.schema.operators import NODE_HEALTH, key_of
from config.schema.workload import WorkloadSpec


def node_check_problems(
    stack: StackFile, spec: WorkloadSpec[Any], placed: Iterable[Placement[Any]]
) -> Iterator[Problem]:
    """Of a workload that asks for one, where it is placed."""
    for placement in placed:
        depth = placement.options.node_check
        path: Path = ("workloadOptions", spec.name, "nodeCheck")
        if depth == "off":
            continue
        if stack.operators.failure_effect is None:
            enabled: Path = ("operators", key_of(NODE_HEALTH), "enabled")
            what = f"is false, but workload {spec.name} has nodeCheck {depth}, and nobody may taint a bad node: "
            what += "the job would come back to it"
            yield Problem(enabled, what, "true, or nodeCheck off", set_command(enabled, True))
        if spec.pods.restart_policy != "Never":
            what = f"is {depth}, but pods of workload {spec.name} are started again where they are, on a bad node too"
            yield Problem(path, what, "off", set_command(path, "off"))
        elif placement.pool.shares > 1:
            what = f"is {depth}, but GPUs of pool {placement.pool_key} are shared, and the checks are of whole ones"
            yield Problem(path, what, "off", set_command(path, "off"))
        elif depth == "full" and (gpus := placement.options.gpus_on(placement.pool.sku)) < placement.pool.sku.gpus:
            what = f"is full, which measures all devices of a node, and workload {spec.name} takes {gpus} of its "
            yield Problem(path, f"{what}{placement.pool.sku.gpus} GPUs", "light or off", set_command(path, "light"))
