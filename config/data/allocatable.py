"""What AKS keeps of each node for itself, and what is left for pods (AKS's page on node resource reservations).

Recorded nodes and Azure's health checks confirm the numbers (tests/contract/recordings/nodes.yaml).
"""

from __future__ import annotations

from dataclasses import dataclass

from config.data.skus import VmSku

MAX_PODS = 250
"""Pods of a node, unless its pool says otherwise: with CNI Overlay, which clusters of this program have."""
MIN_PODS, MIN_SYSTEM_PODS = 10, 30
"""The fewest that a pool and a system pool may set.

Sources: https://learn.microsoft.com/azure/aks/node-auto-provisioning-aksnodeclass and
https://learn.microsoft.com/azure/aks/use-system-pools
"""


_KERNEL_KIB = 320 * 1024
"""The most that the kernel and the firmware of a recorded node keep, beside the page tables' 1/64 of the memory."""


@dataclass(frozen=True)
class Allocatable:
    """What a node of a VM size has for pods, its DaemonSets' among them."""

    cpu_millis: int
    memory_kib: int


def allocatable(size: VmSku, pods: int = MAX_PODS) -> Allocatable:
    """Returns the least that a node with a limit of that many pods offers. AKS computes the reservation by the size."""
    memory_kib = size.memory_gib * 1024**2
    return Allocatable(
        cpu_millis=size.vcpus * 1000 - reserved_cpu_millis(size.vcpus),
        memory_kib=memory_kib - memory_kib // 64 - _KERNEL_KIB - reserved_memory_kib(memory_kib, pods),
    )


def reserved_cpu_millis(cores: int) -> int:
    """CPU that AKS keeps for the kubelet: 60, 100, 140, 180 m for 1, 2, 4, 8 cores; 10 m per core from there."""
    return 60 + 40 * min(max(cores - 1, 0), 1) + 20 * min(max(cores - 2, 0), 2) + 10 * max(cores - 4, 0)


def reserved_memory_kib(memory_kib: int, pods: int) -> int:
    """The lesser of 20 MiB per pod + 50 MiB and a quarter of the memory, and 100 MiB before eviction starts."""
    return min((20 * pods + 50) * 1024, memory_kib // 4) + 100 * 1024
