"""Parses users' lines for aznhc's configuration, and checks that a healthy node can pass them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import get_args

from config.data.near import hint, near
from config.data.skus import VmSku
from workloads._lib.aznhc import Check, CheckName

_HOSTS = re.compile(r"^\s*\*\s*\|\|\s*")
_SIZE = re.compile(r"\d+[KMGkmg]?[Bb]?")
_NAMES = get_args(CheckName)
_REACHED = 0.99
"""The share of an HCA's rate that a healthy HCA reaches: 399.6 of 400 Gb/s (azurehpc-health-checks#152)."""


def parsed(line: str) -> Check:
    """Returns the check's name and arguments. The prefix `* ||` is optional, because checks run on every host."""
    name, _, arguments = _HOSTS.sub("", line).strip().partition(" ")
    return name, arguments.strip()


def faults(sku: VmSku, line: str) -> Iterator[tuple[str, str]]:
    name, rest = parsed(line)
    arguments = rest.split()
    if name not in _NAMES:
        yield f"is not a check of aznhc for AKS{hint(near(name, _NAMES))}", ", ".join(_NAMES)
    elif look := CHOSEN.get(name):
        yield from look(sku, arguments)
    else:
        yield "does not accept a custom limit: the VM size sets it", f"no line with this check, or {', '.join(CHOSEN)}"


def _count(sku: VmSku, arguments: list[str]) -> Iterator[tuple[str, str]]:
    if arguments != [str(sku.gpus)]:
        yield f"has a wrong count: nodes of {sku.name} have {sku.gpus} GPUs", f"check_gpu_count {sku.gpus}"


def _copies(sku: VmSku, arguments: list[str]) -> Iterator[tuple[str, str]]:
    reach = (("from host to GPU", sku.gpu_pcie_gbs), ("from GPU to GPU", sku.gpu_nvlink_gbs))
    if len(arguments) != len(reach):
        yield "takes two limits, in GB/s", "check_gpu_bw HOST PEER"
        return
    for text, (what, most) in zip(arguments, reach, strict=True):
        yield from _limit(sku, text, most, f"GB/s {what}")


def _write(sku: VmSku, arguments: list[str]) -> Iterator[tuple[str, str]]:
    if sku.infiniband is None:
        yield f"checks InfiniBand, which {sku.name} does not have", "no line with this check"
    elif len(arguments) != 1:
        yield "takes one limit, in Gb/s", "check_ib_bw_gdr GBPS"
    else:
        # The result must exceed the limit, so the line rate cannot be a limit.
        yield from _limit(sku, arguments[0], _REACHED * sku.infiniband.gbps, "Gb/s of an HCA")


def _port(sku: VmSku, arguments: list[str]) -> Iterator[tuple[str, str]]:
    if sku.infiniband is None:
        yield f"checks InfiniBand, which {sku.name} does not have", "no line with this check"
        return
    names = [f"mlx5_{index}:1" for index in range(sku.infiniband.hcas)]
    allowed = f"check_hw_ib {sku.infiniband.gbps} {names[0]}, to {names[-1]}"
    if len(arguments) != 2 or arguments[0] != str(sku.infiniband.gbps):
        yield f"takes a link's rate, {sku.infiniband.gbps} Gb/s, and a port", allowed
    elif arguments[1] not in names:
        why = ": names like mlx5_ib0 do not exist on AKS" if "_ib" in arguments[1] else ""
        yield f"names {arguments[1]}, not a port of an HCA{why}", allowed


def _allreduce(sku: VmSku, arguments: list[str]) -> Iterator[tuple[str, str]]:
    allowed = "check_nccl_allreduce LIMIT REPEATS SIZE [TOPOLOGY], such as `check_nccl_allreduce 460.0 1 16G`"
    if len(arguments) not in (3, 4):
        yield f"has {len(arguments)} arguments", allowed
        return
    limit, repeats, size, *topology = arguments
    if "/" in size and topology and _SIZE.fullmatch(topology[0]):
        why = "since 2024, the size is before the topology file (azurehpc-health-checks#119)"
        yield f"has its third and fourth argument swapped: {why}. mpirun would fail on every healthy node", allowed
        return
    if not _SIZE.fullmatch(size) or not repeats.isdecimal():
        yield f"has invalid repeats {repeats} or size {size}", allowed
    yield from _limit(sku, limit, sku.nccl_busbw.healthy.one if sku.nccl_busbw else None, "GB/s of bus bandwidth")


def _limit(sku: VmSku, text: str, most: float | None, what: str) -> Iterator[tuple[str, str]]:
    try:
        limit = float(text)
    except ValueError:
        yield f"has the limit {text}, which is not a number", "a number"
        return
    if not 0 < limit < float("inf"):
        yield f"has a limit of {text}", "above 0"
    elif most is not None and limit > most:
        yield f"requires {limit:g} {what}, but a healthy {sku.name} reaches {most:g}", f"at most {most:g}"


def _hours(_: VmSku, arguments: list[str]) -> Iterator[tuple[str, str]]:
    if len(arguments) != 1 or not arguments[0].isdecimal() or arguments[0] == "0":
        yield "takes a whole number of hours", "check_ib_link_flapping HOURS"


CHOSEN: dict[str, Callable[[VmSku, list[str]], Iterator[tuple[str, str]]]] = {
    "check_gpu_bw": _copies,
    "check_gpu_count": _count,
    "check_hw_ib": _port,
    "check_ib_bw_gdr": _write,
    "check_ib_link_flapping": _hours,
    "check_nccl_allreduce": _allreduce,
    "check_nccl_allreduce_ib_loopback": _allreduce,
}
