"""Which pool the autoscaler takes first: the ConfigMap that its expander `priority` reads."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_kubernetes as kubernetes

from components._base import Component
from config.schema.models import Settings
from config.schema.pools import PoolSettings, agent_pool_name

CONFIG_MAP, NAMESPACE = "cluster-autoscaler-priority-expander", "kube-system"
"""Its name and place (AKS's page articles/aks/cluster-autoscaler-overview.md)."""


class AutoscalerPriorities(Component):
    """The ConfigMap. The autoscaler reads it anew whenever a pool is to grow, so nothing waits for it."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        hooks: pulumi.ResourceHookBinding | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        kubernetes.core.v1.ConfigMap(
            name,
            metadata={"name": CONFIG_MAP, "namespace": NAMESPACE},
            data={"priorities": priorities(settings.gpu_pools())},
            opts=self.child(hooks=hooks),
        )
        self.register_outputs({})


def priorities(pools: Mapping[str, PoolSettings]) -> str:
    """As YAML: below each number expressions for the scale sets of its pools, of which the highest number wins.

    Every pool that scales is among them: one that no expression matches would never grow beside another that one does
    (cluster-autoscaler/expander/priority/priority.go, BestOption). AKS calls the scale set of a pool
    aks-<pool>-<digits>-vmss (as its pages show names of nodes: create-node-pools.md); a pool's name has no hyphen.
    """
    found: dict[int, list[str]] = {}
    for key, pool in pools.items():
        if pool.autoscale:
            found.setdefault(pool.autoscale.rank, []).append(f".*aks-{agent_pool_name(key, pool)}-.*")
    lines = ([f"{rank}:", *(f"  - {pattern}" for pattern in found[rank])] for rank in sorted(found))
    return "".join(f"{line}\n" for block in lines for line in block)
