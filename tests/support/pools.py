from __future__ import annotations

from typing import Any

from components.context import GpuPool
from config.data.skus import sku
from config.schema.pools import PoolSettings
from config.schema.storage import StorageSettings
from config.schema.workload import Candidate
from tests.support.sizes import H100

A100 = "Standard_ND96asr_v4"
RDMA = "nvidia.com/mlnxnics"


def pool(vm_sku: str = H100, **fields: Any) -> GpuPool:
    facts = {"agent_pool": "gpu1234", "taints": ("sku=gpu:NoSchedule",), "min_nodes": 2, "max_nodes": 2}
    return GpuPool(sku=sku(vm_sku), **{**facts, **fields})


def place(vm_sku: str = H100, nodes: int = 1, **of_pool: Any) -> dict[str, Any]:
    """Returns arguments of every workload's run."""
    return {"pool": pool(vm_sku, **of_pool), "nodes": nodes, "image": "image:1", "rdma_resource": RDMA}


def candidate(vm_sku: str = H100, nodes: int = 1, **fields: Any) -> Candidate:
    settings = fields.get("pool") or PoolSettings(vm_sku=vm_sku)
    facts = {"pool_key": "gpu", "pool": settings, "pool_path": (), "most_path": ("nodeCount",), "nodes": nodes}
    facts |= {"pools": {"gpu": settings}, "storage": StorageSettings(), "shared_files": "smb", "scratch": True}
    return Candidate(**{**facts, **fields})
