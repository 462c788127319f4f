"""Builds the configuration of aznhc for one VM size: the checks and their limits.

A pod that requests a part of a node's GPUs sees only these GPUs, but all other hardware.

Names, arguments and order come from Azure/azurehpc-health-checks v0.4.5 (customTests/*.nhc, conf/*.conf) and mej/nhc
1.4.3 (scripts/lbnl_hw.nhc). On AKS, the first HCA is mlx5_0 (mlx5_ib0 in conf/), and a pod has no network interfaces
ib0 and docker0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from config.data.skus import VmSku

CheckName = Literal[
    "check_hw_cpuinfo",
    "check_hw_physmem",
    "check_hw_swap",
    "check_hw_ib",
    "check_hw_eth",
    "check_hw_topology",
    "check_nvme_count",
    "check_gpu_count",
    "check_nvsmi_healthmon",
    "check_gpu_xid",
    "check_gpu_bw",
    "check_gpu_ecc",
    "check_gpu_clock_throttling",
    "check_nvlink_status",
    "check_nccl_allreduce",
    "check_nccl_allreduce_ib_loopback",
    "check_ib_bw_gdr",
    "check_ib_link_flapping",
]

ECC_ERRORS, SRAM_ECC_ERRORS = 20_000_000, 10_000
"""Limits of a GPU's corrected errors in DRAM and in SRAM, the same for all VM sizes in conf/."""
FLAP_HOURS = 6
"""Two failures of a link within this number of hours count as flapping, as in all files of conf/."""
_REPEATS = 1

WITHOUT_DEVICES = frozenset(
    {
        *("check_hw_cpuinfo", "check_hw_physmem", "check_hw_swap", "check_hw_ib", "check_hw_eth", "check_nvme_count"),
        *("check_gpu_xid", "check_ib_link_flapping"),
    }
)
"""Checks of the node's /proc, /sys and log, without devices."""
LOGS = frozenset({"check_gpu_xid", "check_ib_link_flapping"})
"""Checks that read the node's log in a host folder."""
MEASURES = frozenset({"check_gpu_bw", "check_nccl_allreduce", "check_nccl_allreduce_ib_loopback", "check_ib_bw_gdr"})
"""Checks that take minutes and need all devices of the node."""
_ALL_GPUS = frozenset({"check_hw_topology", "check_nvlink_status"})

Check = tuple[str, str]


def configuration(
    sku: VmSku, topology: str, leave_out: Iterable[str] = (), *, gpus: int | None = None, own: Iterable[Check] = ()
) -> str:
    """Returns nhc's configuration file. Checks without known limits are omitted.

    `topology` is the path of NCCL's topology file in the pod. If `gpus` is set, the pod has only that many of the
    node's GPUs, and gets only checks that it can run. Checks in `own` replace checks of the same name.
    """
    own = list(own)
    out = {*leave_out, *(name for name, _ in own), *(MEASURES | _ALL_GPUS if gpus is not None else ())}
    checks = [*(check for check in _all(sku, topology, gpus) if check[0] not in out), *own]
    lines = [f" * || {name} {arguments}".rstrip() for name, arguments in checks]
    return "\n".join([f"# {sku.name}", *lines, ""])


def _all(sku: VmSku, topology: str, gpus: int | None) -> Iterator[Check]:
    yield from _node(sku)
    yield from _gpus(sku, sku.gpus if gpus is None else gpus)
    yield from _collectives(sku, topology)
    if sku.infiniband:
        if sku.health.ib_write_gbps is not None:
            yield "check_ib_bw_gdr", f"{sku.health.ib_write_gbps:g}"
        yield "check_ib_link_flapping", str(FLAP_HOURS)


def _node(sku: VmSku) -> Iterator[Check]:
    health = sku.health
    if health.sockets is not None:
        yield "check_hw_cpuinfo", f"{health.sockets} {sku.vcpus} {sku.vcpus}"
    if health.memory is not None:
        yield "check_hw_physmem", f"{health.memory} {health.memory} {health.memory_percent}%"
    yield "check_hw_swap", "0kB 0kB 3%"
    if sku.infiniband:
        for index in range(sku.infiniband.hcas):
            yield "check_hw_ib", f"{sku.infiniband.gbps} mlx5_{index}:1"
    yield "check_hw_eth", "lo"
    yield "check_hw_eth", "eth0"
    if sku.topology:
        yield "check_hw_topology", ""
    if sku.nvme:
        yield "check_nvme_count", str(sku.nvme.count)


def _gpus(sku: VmSku, count: int) -> Iterator[Check]:
    health = sku.health
    yield "check_gpu_count", str(count)
    yield "check_nvsmi_healthmon", ""
    yield "check_gpu_xid", ""
    if health.gpu_host_gbs is not None and health.gpu_peer_gbs is not None:
        yield "check_gpu_bw", f"{health.gpu_host_gbs:g} {health.gpu_peer_gbs:g}"
    yield "check_gpu_ecc", f"{ECC_ERRORS} {SRAM_ECC_ERRORS}"
    yield "check_gpu_clock_throttling", ""
    if sku.gpus > 1 and not sku.gpu_nvlinks_unused:  # the check reports each inactive link as a fault
        yield "check_nvlink_status", ""


def _collectives(sku: VmSku, topology: str) -> Iterator[Check]:
    """Yields the NCCL checks. Their argument for the size comes before the topology file: in the other order (older
    charts), mpirun fails on every healthy node.

    `check_nccl_allreduce` ignores the file (v0.4.5, azure_nccl_allreduce.nhc: `-x NCCL_TOPO_FILE=`).
    """
    health = sku.health
    limit = sku.busbw_floor(1) or health.nccl_gbs
    file = f" {topology}" if sku.topology else ""
    if limit is not None and health.nccl_bytes is not None:
        yield "check_nccl_allreduce", f"{limit:.1f} {_REPEATS} {health.nccl_bytes}{file}"
        if health.ib_loopback_gbs is not None:
            arguments = f"{health.ib_loopback_gbs:.1f} {_REPEATS} {health.nccl_bytes}{file}"
            yield "check_nccl_allreduce_ib_loopback", arguments
