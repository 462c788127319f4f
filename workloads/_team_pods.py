"""What pods and jobs of teams have in common: pure functions of a node and what they take of it."""

from __future__ import annotations

from typing import Any

from config.facts.allocatable import allocatable
from config.facts.skus import VmSku

WRAPPER_TYPE = "kubernetes:workload.codeflare.dev/v1beta2:AppWrapper"
"""As Pulumi names it."""
LOST: list[dict[str, Any]] = [
    {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
    for what in ("not-ready", "unreachable")
]
"""Tolerations: a node that is gone keeps its pod for so long, and not for Kubernetes' five minutes."""
_SHARE = 0.9
"""Of what a node has beside its GPUs: the rest is for DaemonSets."""


def share_of_node(sku: VmSku, gpus: int, *, cpus: int = 0, memory_gib: int = 0) -> dict[str, str]:
    """Requests of CPU and memory, as large a share of the node as of its GPUs: quotas of teams are in such shares.

    `cpus` and `memory_gib` of it are left to the pod's other containers.
    """
    node, share = allocatable(sku), _SHARE * gpus / sku.gpus
    cpu, memory = int(node.cpu_millis * share / 1000), int(node.memory_kib * share / 2**20)
    return {"cpu": str(max(1, cpu - cpus)), "memory": f"{max(1, memory - memory_gib)}Gi"}
