"""GPU pools to build pods for."""

from __future__ import annotations

from typing import Any

from components.context import GpuPool
from config.facts.skus import sku

H100 = "Standard_ND96isr_H100_v5"
H200 = "Standard_ND96isr_H200_v5"
A100 = "Standard_ND96asr_v4"
T4 = "Standard_NC4as_T4_v3"
RDMA = "nvidia.com/mlnxnics"


def pool(vm_sku: str = H100, **fields: Any) -> GpuPool:
    facts = {"agent_pool": "gpu1234", "taints": ("sku=gpu:NoSchedule",), "min_nodes": 2, "max_nodes": 2}
    return GpuPool(sku=sku(vm_sku), **{**facts, **fields})
