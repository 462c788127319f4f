"""The resources that AKS reserves on a node, and the rest for pods (AKS's page on node resource reservations).

Recorded nodes and Azure's health checks confirm the numbers (tests/contract/recordings/nodes.yaml).
"""

from __future__ import annotations

from dataclasses import dataclass

from config.data.skus import VmSku

MAX_PODS = 250
"""The default maximum of pods per node with CNI Overlay, which all our clusters use."""
MIN_PODS, MIN_SYSTEM_PODS = 10, 30
"""The lowest limits of pods per node that AKS allows: in a pool, and in a system pool
(https://learn.microsoft.com/azure/aks/node-auto-provisioning-aksnodeclass,
https://learn.microsoft.com/azure/aks/use-system-pools).
"""


_KERNEL_KIB = 320 * 1024
"""The most memory that kernel and firmware used on recorded nodes, besides 1/64 of the memory for page tables."""


@dataclass(frozen=True)
class Allocatable:
    """The resources for pods, including DaemonSets, on a node of a VM size."""

    cpu_millis: int
    memory_kib: int


def allocatable(size: VmSku, pods: int = MAX_PODS) -> Allocatable:
    """Returns the minimum resources for pods on a node that may have `pods` pods."""
    memory_kib = size.memory_gib * 1024**2
    return Allocatable(
        cpu_millis=size.vcpus * 1000 - reserved_cpu_millis(size.vcpus),
        memory_kib=memory_kib - memory_kib // 64 - _KERNEL_KIB - reserved_memory_kib(memory_kib, pods),
    )


def reserved_cpu_millis(cores: int) -> int:
    """Returns AKS's CPU reservation: 60, 100, 140, 180 millicores for 1, 2, 4, 8 cores; 10 for each further core."""
    return 60 + 40 * min(max(cores - 1, 0), 1) + 20 * min(max(cores - 2, 0), 2) + 10 * max(cores - 4, 0)


def reserved_memory_kib(memory_kib: int, pods: int) -> int:
    """Returns AKS's memory reservation: 100 MiB for evictions, plus 20 MiB per pod and 50 MiB, which are limited to a
    quarter of the memory.
    """
    return min((20 * pods + 50) * 1024, memory_kib // 4) + 100 * 1024
