"""All operators of a stack, and what must wait for what among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import pulumi

from components._base import Component
from components.context import GpuPool
from components.namespace import namespace
from components.node_pools import NodePools
from components.operators._node_tools import NodeSite
from components.operators._release import Site
from components.operators.blob_csi_driver import BlobCsiDriver
from components.operators.gpu_operator import GpuOperator
from components.operators.local_nvme_scratch import LocalNvmeScratch
from components.operators.network_operator import NetworkOperator
from components.operators.nfd import NodeFeatureDiscovery
from components.operators.node_labeler import NodeLabeler
from components.operators.volcano import Volcano
from config.models import Settings
from config.names import NODE_TOOLS_NAMESPACE, NVIDIA_NAMESPACE, VOLCANO_NAMESPACE


class Operators(Component):
    """The operators that the settings enable. The Network Operator is installed where a pool has InfiniBand."""

    ready: list[pulumi.Resource]
    """What jobs wait for: Volcano's webhook. Drivers they wait for in their queue, until nodes offer what they request.
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        pools: NodePools,
        image: Callable[[str], str],
        registry: pulumi.Resource,
        hooks: pulumi.ResourceHookBinding | None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        self._settings = settings
        self._pools = pools
        self._hooks = hooks
        nvidia = self._site(NVIDIA_NAMESPACE, "privileged")
        self._node_feature_discovery(nvidia)
        self._gpu_operator(nvidia, self._network_operator(nvidia))
        self.ready = self._volcano()
        self._blob_csi_driver(nvidia)
        self._node_tools(image, registry)
        self.register_outputs({})

    def _site(self, name: str, level: Literal["baseline", "privileged"]) -> Site:
        return Site(
            namespace=namespace(name, level, parent=self, hooks=self._hooks),
            charts=self._settings.charts.source,
            registry=self._settings.images.registry,
        )

    def _node_feature_discovery(self, site: Site) -> None:
        settings = self._settings.operators.node_feature_discovery
        if settings.enabled:
            NodeFeatureDiscovery("node-feature-discovery", site, settings, opts=self.child())

    def _network_operator(self, site: Site) -> NetworkOperator | None:
        settings = self._settings.operators
        if not settings.network_operator.enabled or not _any_infiniband(self._pools.pools.values()):
            return None
        upgrades = settings.driver_upgrades
        return NetworkOperator("network-operator", site, settings.network_operator, upgrades, opts=self.child())

    def _gpu_operator(self, site: Site, network: NetworkOperator | None) -> None:
        settings = self._settings.operators
        if settings.gpu_operator.enabled:
            upgrades, nic_policy = settings.driver_upgrades, network.policy if network else None
            GpuOperator("gpu-operator", site, settings.gpu_operator, upgrades, nic_policy=nic_policy, opts=self.child())

    def _volcano(self) -> list[pulumi.Resource]:
        settings = self._settings.operators.volcano
        if not settings.enabled:
            return []
        site = self._site(VOLCANO_NAMESPACE, "baseline")
        autoscaled = any(pool.min_nodes < pool.max_nodes for pool in self._pools.pools.values())
        return [Volcano("volcano", site, settings, autoscaled=autoscaled, opts=self.child()).release]

    def _blob_csi_driver(self, site: Site) -> None:
        settings = self._settings.operators.blob_csi_driver
        if settings.enabled and self._settings.storage.needs("chart"):
            BlobCsiDriver("blob-csi-driver", site, settings, opts=self.child())

    def _node_tools(self, image: Callable[[str], str], registry: pulumi.Resource) -> None:
        """What prepares and describes nodes, by images of `docker/`."""
        settings, pools = self._settings.operators, self._pools.pools.values()
        scratch = any(pool.scratch for pool in pools)
        labeler = settings.node_labeler.enabled and bool(pools)
        if not scratch and not labeler:
            return
        # Their pods mount paths of the node, which only the privileged level allows.
        space = namespace(NODE_TOOLS_NAMESPACE, "privileged", parent=self, hooks=self._hooks)
        site = NodeSite(namespace=space, image=image, registry=registry)
        if scratch:
            LocalNvmeScratch("local-nvme-scratch", site, opts=self.child())
        if labeler:
            NodeLabeler("node-labeler", site, opts=self.child())


def _any_infiniband(pools: Iterable[GpuPool]) -> bool:
    return any(pool.sku.infiniband for pool in pools)
