"""Warns of bounds of the autoscaler that exclude the nodes which an existing pool has."""

from __future__ import annotations

from collections.abc import Iterator

from pulumi_azure_native import containerservice

from config.problems.errors import Problem
from config.problems.fixes import set_command
from config.schema.models import Settings
from config.schema.pools import agent_pool_name


def excluded_nodes(settings: Settings, cluster: containerservice.GetManagedClusterResult | None) -> Iterator[str]:
    """Yields a warning for each pool with more nodes than its `max`, or that starts to autoscale with fewer than `min`.

    AKS refuses such a count in a new pool (kubernetes-sigs/cluster-api-provider-azure#5947). It accepts any bounds for
    a pool that autoscales already (Azure/AKS#1758), which keeps nodes above `max` (MicrosoftDocs/azure-docs#123150). No
    source is certain for a pool that starts to autoscale.
    """
    there = {pool.name: pool for pool in (cluster.agent_pool_profiles if cluster else None) or ()}
    for key, pool in settings.gpu_pools().items():
        has, bounds = there.get(agent_pool_name(key, pool)), pool.autoscale
        if has is None or bounds is None:
            continue
        count, scales = has.count or 0, has.enable_auto_scaling
        unsure = "AKS may refuse bounds that exclude them", "and any bounds once the pool autoscales"
        if count > bounds.max:
            effect, allowed = ("this update removes none, and none is added", "which keeps them") if scales else unsure
            bound, value, limit = "max", bounds.max, "least"
        elif count < bounds.min and not scales:
            (effect, allowed), bound, value, limit = unsure, "min", bounds.min, "most"
        else:
            continue
        path = ("pools", key, "autoscale", bound)
        what = f"is {value}, but the pool has {count} nodes: {effect}"
        yield Problem(path, what, f"at {limit} {count}, {allowed}", set_command(path, count)).text(settings.stack)
