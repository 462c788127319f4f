"""Warns of bounds of the autoscaler that exclude the nodes which an existing pool has."""

from __future__ import annotations

from collections.abc import Iterator

from pulumi_azure_native import containerservice

from config.problems.errors import Problem
from config.problems.fixes import set_command
from config.schema.models import Settings
from config.schema.pools import agent_pool_name


def excluded_nodes(settings: Settings, cluster: containerservice.GetManagedClusterResult | None) -> Iterator[str]:
    """Yields a warning for each pool with a fixed count that will autoscale within bounds that exclude this count.

    AKS refuses such a count in a new pool (kubernetes-sigs/cluster-api-provider-azure#5947). It accepts any bounds for
    a pool that autoscales already (Azure/AKS#1758), which keeps nodes above `max` (MicrosoftDocs/azure-docs#123150). No
    source is certain for a pool that starts to autoscale.
    """
    there = {pool.name: pool for pool in (cluster.agent_pool_profiles if cluster else None) or ()}
    for key, pool in settings.gpu_pools().items():
        has, bounds = there.get(agent_pool_name(key, pool)), pool.autoscale
        count = (has.count if has else None) or 0
        if has is None or bounds is None or bounds.min <= count <= bounds.max:
            continue
        if has.enable_auto_scaling and count < bounds.min:
            continue
        bound, limit = ("min", "most") if count < bounds.min else ("max", "least")
        path = ("pools", key, "autoscale", bound)
        what = f"is {getattr(bounds, bound)}, but the pool has {count} nodes: AKS may refuse bounds that exclude them"
        allowed = f"at {limit} {count}, and any bounds once the pool autoscales"
        if has.enable_auto_scaling:
            what = f"is {bounds.max}, but the pool has {count} nodes: this update removes none, and none is added"
            allowed = f"at least {count} to keep that many"
        yield Problem(path, what, allowed, set_command(path, count)).text(settings.stack)
