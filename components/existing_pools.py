"""What an existing pool cannot get: bounds of the autoscaler that do not include the number of its nodes."""

from __future__ import annotations

from collections.abc import Iterator

from pulumi_azure_native import containerservice

from config.problems.errors import Problem
from config.problems.fixes import set_command
from config.schema.models import Settings
from config.schema.pools import agent_pool_name


def bounds_refusals(settings: Settings, cluster: containerservice.GetManagedClusterResult) -> Iterator[str]:
    """Yields an error for each pool with a fixed count that would start to autoscale outside of its new bounds.

    AKS refuses such an update (kubernetes-sigs/cluster-api-provider-azure#5947). It accepts any bounds for a pool that
    autoscales already.
    """
    there = {pool.name: pool for pool in cluster.agent_pool_profiles or ()}
    for key, pool in settings.gpu_pools().items():
        has, bounds = there.get(agent_pool_name(key, pool)), pool.autoscale
        if has is None or bounds is None or has.enable_auto_scaling or bounds.min <= (has.count or 0) <= bounds.max:
            continue
        count = has.count or 0
        bound, limit = ("min", "most") if count < bounds.min else ("max", "least")
        path = ("pools", key, "autoscale", bound)
        what = (
            f"is {getattr(bounds, bound)}, but the pool has {count} nodes: AKS refuses bounds that do not include them"
        )
        yield Problem(
            path, what, f"at {limit} {count}; other bounds once it autoscales", set_command(path, count)
        ).text(settings.stack)
