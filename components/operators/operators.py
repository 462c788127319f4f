"""All operators of a stack, and what must wait for what among them."""

from __future__ import annotations

from collections.abc import Iterable

import pulumi

from components._base import Component
from components.context import GpuPool
from components.node_pools import NodePools
from components.operators._release import namespace
from components.operators.gpu_operator import GpuOperator
from components.operators.network_operator import NetworkOperator
from components.operators.nfd import NodeFeatureDiscovery
from components.operators.volcano import Volcano
from config.models import Settings

NVIDIA_NAMESPACE = "nvidia-operator"
VOLCANO_NAMESPACE = "volcano-system"


class Operators(Component):
    """The operators that the settings enable. The Network Operator is installed where a pool has InfiniBand."""

    network: NetworkOperator | None = None
    gpu: GpuOperator | None = None
    volcano: Volcano | None = None

    def __init__(
        self,
        name: str,
        settings: Settings,
        pools: NodePools,
        hooks: pulumi.ResourceHookBinding | None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        self._settings = settings.operators
        self._source = settings.charts.source
        self._hooks = hooks
        self._registry = settings.images.registry
        self._nvidia(pools.pools.values())
        if self._settings.volcano.enabled:
            self._volcano()
        self.register_outputs({})

    def ready(self, pools: NodePools) -> list[pulumi.Resource]:
        """What jobs wait for: Volcano's webhook, and the drivers of nodes that are certain to come.

        Without a GPU node, or with an autoscaler that starts at none, there is no hardware to wait for: a job waits in
        its queue until a node offers what it requests.
        """
        ready: list[pulumi.Resource] = [self.volcano.release] if self.volcano else []
        certain = [pool for pool in pools.pools.values() if pool.min_nodes > 0]
        if self.network and _any_infiniband(certain):
            ready.append(self.network.ready(pools.resources))
        if self.gpu and certain:
            ready.append(self.gpu.ready(pools.resources))
        return ready

    def _nvidia(self, pools: Iterable[GpuPool]) -> None:
        every_pool = list(pools)
        taints = sorted({taint for pool in every_pool for taint in pool.taints})
        space = namespace(NVIDIA_NAMESPACE, "privileged", parent=self, hooks=self._hooks)
        if self._settings.node_feature_discovery.enabled:
            NodeFeatureDiscovery(
                "node-feature-discovery",
                namespace=space,
                settings=self._settings.node_feature_discovery,
                source=self._source,
                taints=taints,
                opts=self.child(),
            )
        if self._settings.network_operator.enabled and _any_infiniband(every_pool):
            self.network = NetworkOperator(
                "network-operator",
                namespace=space,
                settings=self._settings.network_operator,
                source=self._source,
                taints=taints,
                registry=self._registry,
                opts=self.child(),
            )
        if self._settings.gpu_operator.enabled:
            self.gpu = GpuOperator(
                "gpu-operator",
                namespace=space,
                settings=self._settings.gpu_operator,
                source=self._source,
                taints=taints,
                nic_policy=self.network.policy if self.network else None,
                opts=self.child(),
            )

    def _volcano(self) -> None:
        space = namespace(VOLCANO_NAMESPACE, "baseline", parent=self, hooks=self._hooks)
        self.volcano = Volcano(
            "volcano", namespace=space, settings=self._settings.volcano, source=self._source, opts=self.child()
        )


def _any_infiniband(pools: Iterable[GpuPool]) -> bool:
    return any(pool.sku.infiniband for pool in pools)
