"""Speed of an all-reduce. Uses only the standard library, because sandboxed commands import it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

INFINIBAND, SOCKET = "IB", "Socket"


@dataclass(frozen=True)
class Collective:
    """One communicator. `links` has a tuple per node: for each used HCA, the share (0 to 1) of its rated speed."""

    sku: str
    nodes: int
    gpus_per_node: int
    transport: str = INFINIBAND
    """INFINIBAND or SOCKET. Only traffic between nodes uses it."""
    links: tuple[tuple[float, ...], ...] = ()
    sharp: bool = False
    """Whether switches compute the sums (SHARP)."""
    nvlink_sharp: bool = False
    aligned: bool = True
    """Whether NCCL pairs each GPU with the HCA on its PCI switch."""

    @property
    def ranks(self) -> int:
        return self.nodes * self.gpus_per_node

    @property
    def bus_factor(self) -> float:
        """The ratio of bus to algorithm bandwidth of an all-reduce (nccl-tests, PERFORMANCE.md)."""
        return 2 * (self.ranks - 1) / self.ranks


def peak(collective: Collective, numbers: Mapping[str, Any]) -> float:
    """Returns the bus bandwidth of large messages in GB/s. The slowest part limits it."""
    if collective.nodes > 1 and collective.transport == SOCKET:
        return float(numbers["socket_peak_gbs"])
    sku = numbers["skus"].get(collective.sku, {})
    healthy = sku.get("busbw")
    if not healthy:
        limit = (sku.get("health") or {}).get("nccl_gbs") if collective.nodes == 1 else None
        return float(limit * numbers["health_over_limit"] if limit else numbers["unlisted_peak_gbs"])
    if collective.nodes == 1:
        by_ring = sku["nvlink_sharp"] and not collective.nvlink_sharp
        return float(healthy["one"]) * (float(numbers["ring_fraction"]) if by_ring else 1.0)
    fabric = healthy["two" if collective.nodes == 2 else "many"]
    full = fabric["sharp"] if collective.sharp and fabric.get("sharp") else fabric["plain"]
    share = min(_share(links, collective.gpus_per_node) for links in collective.links)
    share *= min(1.0, collective.gpus_per_node / int(sku["gpus"]))
    return float(full) * share * (1.0 if collective.aligned else float(numbers["unaligned_fraction"]))


def bus_bandwidth(collective: Collective, size: int, numbers: Mapping[str, Any]) -> float:
    """Returns the bus bandwidth in GB/s for messages of `size` bytes. Latency slows small messages."""
    if collective.nodes == 1:
        half = float(numbers["half_bandwidth_bytes"]["nvlink"])
    else:
        half = float(numbers["half_bandwidth_bytes"]["infiniband" if collective.transport == INFINIBAND else "socket"])
    return peak(collective, numbers) * size / (size + half)


def seconds(collective: Collective, size: int, numbers: Mapping[str, Any]) -> float:
    """Returns the time of an all-reduce of `size` bytes per rank. A single rank copies at the node's peak bandwidth."""
    size = max(size, 1)
    factor = collective.bus_factor or 1.0
    return factor * size / (bus_bandwidth(collective, size, numbers) * 1e9)


def _share(links: tuple[float, ...], gpus: int) -> float:
    """Returns the share of the full speed. All HCAs carry equal parts, so the slowest decides.

    A GPU whose HCA is missing or unused shares the HCA of another GPU, which halves the speed of both.
    """
    if not links:
        return 0.0
    sharing = -(-gpus // len(links))
    return min(links) / sharing
