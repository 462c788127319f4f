"""Checks of aznhc for the node."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from simulator.sandbox.library import view
from simulator.sandbox.library.nhc_report import NOT_RUN, Failed, number

INFINIBAND = Path("/sys/class/infiniband")
NETWORK = Path("/sys/class/net")
_KIB = {"kB": 1, "MB": 2**10, "GB": 2**20, "TB": 2**30}


def node_log() -> list[str] | None:
    """Returns the lines of the node's log at aznhc's path. Without a log, returns None, and checks are skipped."""
    file = _root() / "syslog"
    return file.read_text(errors="replace").splitlines() if file.exists() else None


def date(line: str) -> datetime | None:
    """Returns the time of a line that starts with `Mon dd hh:mm:ss`, or None."""
    with contextlib.suppress(ValueError):
        return datetime.strptime(f"{' '.join(line.split()[:3])} {datetime.now().year}", "%b %d %H:%M:%S %Y")
    return None


def _root() -> Path:
    return Path(os.environ.get("AZ_NHC_ROOT", "/azure-nhc"))


def _cpuinfo(known: view.View, arguments: Sequence[str]) -> None:
    cpus = int(known.node_of(known.me)["cpus"])
    facts = view.numbers()["skus"][known.node_of(known.me)["sku"]]["health"]
    found = (facts["sockets"] or 1, cpus, cpus)
    for index, (noun, actual) in enumerate(zip(("socket", "core", "thread"), found, strict=True)):
        expected = int(number("check_hw_cpuinfo", arguments, index))
        if actual != expected:
            text = f"Actual CPU {noun} count ({actual}) does not match expected ({expected})."
            raise Failed(f"check_hw_cpuinfo:  {text}")


def _physmem(known: view.View, arguments: Sequence[str]) -> None:
    facts = view.numbers()["skus"][known.node_of(known.me)["sku"]]
    actual = kib(facts["health"]["memory"] or f"{facts['memory_gib']}GB")
    least, most = kib(arguments[0]), kib(arguments[1])
    off = actual * int(arguments[2].removesuffix("%")) // 100
    if actual + off < least:
        raise Failed(f"check_hw_physmem:  Actual RAM size ({actual} kB) less than minimum allowed ({least} kB).")
    if actual - off > most:
        raise Failed(f"check_hw_physmem:  Actual RAM size ({actual} kB) greater than maximum allowed ({most} kB).")


def kib(text: str) -> int:
    """Returns a size in KiB. As in NHC, kB, MB and GB are binary."""
    match = re.fullmatch(r"(\d+)(kB|MB|GB|TB)", text)
    if match is None:
        raise Failed(f"nhc_common_parse_size:  {text} is not a size. {NOT_RUN}")
    return int(match[1]) * _KIB[match[2]]


def _swap(known: view.View, arguments: Sequence[str]) -> None:
    """AKS nodes have no swap."""
    least = kib(arguments[0])
    if least > 0:
        raise Failed(f"check_hw_swap:  Actual SWAP size (0 kB) less than minimum allowed ({least} kB).")


def _ib(known: view.View, arguments: Sequence[str]) -> None:
    rate, name = arguments
    device, _, port = name.partition(":")
    folder = INFINIBAND / device / "ports" / port
    up = folder.is_dir() and [_word(folder / "state"), _word(folder / "phys_state")] == ["ACTIVE", "LinkUp"]
    if not up or (folder / "rate").read_text().split()[0] != rate:
        raise Failed(f"check_hw_ib:  No IB port {name} is ACTIVE (LinkUp {rate} Gb/sec).")


def _word(file: Path) -> str:
    return file.read_text().strip().partition(": ")[2]


def _eth(known: view.View, arguments: Sequence[str]) -> None:
    (device,) = arguments
    if device != "lo" and not (NETWORK / device).is_dir():
        raise Failed(f"check_hw_eth:  Ethernet device {device} not detected.")


def _topology(known: view.View, arguments: Sequence[str]) -> str:
    """Passes for known SKUs. The real check compares lstopo's output with a file of the image."""
    sku = known.node_of(known.me)["sku"]
    name = view.numbers()["skus"][sku]["topology"]
    if name is None:
        raise Failed(f"check_hw_topology: SKU {sku.lower()} is not supported for this test. FauleCode: NHCNA")
    return f"check_hw_topology: Topology passed check against {name}-topo.xml"


def _nvme(known: view.View, arguments: Sequence[str]) -> str:
    expected = int(number("check_nvme_count", arguments, 0))
    found = sum(1 for entry in Path("/dev").iterdir() if re.fullmatch(r"nvme\d+n1", entry.name))
    if found != expected:
        raise Failed(f"check_nvme_count: Expected to see {expected} but found {found}. FaultCode: NHC2023")
    return f"check_nvme_count: Expected {expected} and found {found}"


def _flapping(known: view.View, arguments: Sequence[str]) -> str | None:
    log = node_log()
    if log is None:
        return None
    name = "check_ib_link_flapping"
    lost = [line for line in log if re.search("ib.*lost carrier", line, re.IGNORECASE)]
    if not lost:
        return f"{name}: No IB link flapping found"
    noted = re.findall("Linkflap event:(.*)", (_root() / "output/aznhc.log").read_text())
    before, last = date(noted[-1]) if noted else None, date(lost[-1])
    if before is None or last is None:
        return None
    if before == last:
        return f"{name}: No new IB link flaps found"
    if (last - before).total_seconds() // 3600 < int(arguments[0]):
        what = f"multiple IB link flapping events within {arguments[0]} hours"
        raise Failed(f"{name}: IB link flapping detected, {what}. FaultCode: NHC2005")
    return None


CHECKS: dict[str, Callable[[view.View, Sequence[str]], str | None]] = {
    "check_hw_cpuinfo": _cpuinfo,
    "check_hw_physmem": _physmem,
    "check_hw_swap": _swap,
    "check_hw_ib": _ib,
    "check_hw_eth": _eth,
    "check_hw_topology": _topology,
    "check_nvme_count": _nvme,
    "check_ib_link_flapping": _flapping,
}
