"""What a platform offers to workloads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pulumi

from config.skus import VmSku


@dataclass(frozen=True, kw_only=True)
class GpuPool:
    """A pool of GPU nodes, as those see it who put pods on it."""

    key: str
    agent_pool: str
    """Its name in ARM, which its nodes carry as a label."""
    sku: VmSku
    taints: tuple[str, ...]
    min_nodes: int
    max_nodes: int


@dataclass(frozen=True, kw_only=True)
class WorkloadContext:
    """Everything that a workload may depend on."""

    provider: pulumi.ProviderResource
    namespace: pulumi.Input[str]
    service_account: pulumi.Input[str]
    """May read the pods of the namespace."""
    pools: Mapping[str, GpuPool]
    rdma_resource: str
    """Extended resource of the HCAs, as pods request it."""
    image: Callable[[str], str]
    """Reference of an image of `docker/`, by the name of its folder."""
    ready: Sequence[pulumi.Resource]
    """Jobs depend on these: scheduler, drivers and device plugins are up once they are."""
