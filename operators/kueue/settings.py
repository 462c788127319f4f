"""Settings of Kueue, and what a topology of the nodes needs."""

from __future__ import annotations

from collections.abc import Iterator

from config.problems.errors import Problem
from config.problems.fixes import Path, set_command
from config.schema.operators import ChartSettings, Installation

_TOPOLOGY: Path = ("operators", "kueue", "topology")
_NEEDED = (
    ("kueue", "kueue", "it is Kueue that goes by a topology"),
    ("node-labeler", "nodeLabeler", "a topology is of the labels that it sets"),
)
"""Operators, how settings name them, and why."""


class KueueSettings(ChartSettings):
    """It is off unless it is asked for: a cluster with one user has no need of quotas."""

    enabled: bool = False
    """Whether the stack has it."""
    topology: bool = False
    """Whether Kueue knows which GPU nodes reach each other over InfiniBand, so that jobs can ask for such nodes."""


def topology_problems(installation: Installation) -> Iterator[Problem]:
    """Kueue passes over nodes that lack the label (0.19.2, pkg/util/tas, NodeMatchesFlavor), and looks for room on
    nodes that are there: for more the cluster autoscaler would have to be asked by ProvisioningRequests
    (keps/2724-topology-aware-scheduling, "support Cluster Autoscaler without ProvisioningRequest" is no goal).

    Either scheduler will do: Kueue names each pod's node while a scheduling gate holds the pod, and Volcano passes over
    such pods, too (1.15.1, pkg/scheduler/actions/allocate/allocate.go, SchGated).
    """
    stack = installation.stack
    for name, key, why in _NEEDED:
        if not stack.operators.of(installation.operators[name]).enabled:
            path: Path = ("operators", key, "enabled")
            what = f"is false, but operators.kueue.topology is true, and {why}"
            yield Problem(path, what, "true, or operators.kueue.topology false", set_command(path, True))
    pools = stack.gpu_pools()
    for lacking, allowed in (
        (
            [key for key, pool in pools.items() if not pool.sku.infiniband],
            "without InfiniBand, whose nodes no job would get",
        ),
        (
            [key for key, pool in pools.items() if pool.autoscale],
            "with autoscale, which would not grow for jobs that wait",
        ),
    ):
        if lacking:
            what = (
                f"is true, but there {'are pools' if len(lacking) > 1 else 'is a pool'} {allowed}: {', '.join(lacking)}"
            )
            yield Problem(_TOPOLOGY, what, "false, or other pools", set_command(_TOPOLOGY, False))
