"""Checks of aznhc that use the GPUs."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from simulator.sandbox.library import nccl_tests, view
from simulator.sandbox.library.nhc_node import date, node_log
from simulator.sandbox.library.nhc_report import NOT_RUN, Failed, Warned, number
from simulator.sandbox.library.ranks import Rank

XIDS = (48, 56, 57, 58, 62, 63, 64, 65, 68, 69, 73, 74, 79, 80, 81, 92, 119, 120)
"""GPU errors after which aznhc reports the node as failed."""
XID_HOURS = 2
"""The default maximum age of an error in hours."""
LOST_EXIT_CODE = 15
"""nvidia-smi's exit code for a GPU that fell off the bus."""
NCCL_VARIABLES = {"NCCL_IB_PCI_RELAXED_ORDERING": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "NCCL_SOCKET_IFNAME": "eth0"}


def _count(known: view.View, arguments: Sequence[str]) -> str:
    expected, found = int(number("check_gpu_count", arguments, 0)), len(_healthy(known))
    if found != expected:
        raise Failed(f"check_gpu_count: Expected to see {expected} but found {found}. FaultCode: NHC2009")
    return f"check_gpu_count: Expected {expected} and found {found}"


def _healthmon(known: view.View, arguments: Sequence[str]) -> str:
    if _lost(known):
        what = "The GPU has fallen off the bus or has otherwise become inaccessible"
        raise Failed(f"check_nvsmi_healthmon:  nvidia-smi:  {what}. FaultCode: NHC2010")
    return "check_nvsmi_healthmon: nvidia-smi completed successfully"


def _xid(known: view.View, arguments: Sequence[str]) -> str | None:
    """Fails after a recent GPU error. Like the real check, ignores an error whose time is unreadable."""
    log = node_log()
    if log is None:
        return None
    hours = number("check_gpu_xid", arguments, 0) if arguments else XID_HOURS
    for xid in XIDS:
        line = next((line for line in reversed(log) if re.search(f"Xid.*: {xid},", line)), "")
        logged = date(line)
        if logged and (datetime.now() - logged).total_seconds() // 3600 <= hours:
            raise Failed(f"check_gpu_xid: GPU Xid errors detected: {line}. FaultCode: NHC2001")
    return "check_gpu_xid:  GPU XID error check passed."


def _bandwidth(known: view.View, arguments: Sequence[str]) -> str:
    limits = [number("check_gpu_bw", arguments, index) for index in range(2)]
    if _lost(known):
        raise Failed("check_gpu_bw: Failed to run NVBandwidth with error code 1")
    facts = _facts(known)
    healthy = float(view.numbers()["health_over_limit"])
    for test, limit, usual in zip(("H2D", "P2P"), limits, ("gpu_host_gbs", "gpu_peer_gbs"), strict=True):
        found = (facts["health"][usual] or 0) * healthy
        if found < limit:
            text = f"{test} test on GPU 0 failed. Bandwidth {found:.2f} is less than {limit:g}"
            raise Failed(f"check_gpu_bw: {text}. FaultCode: NHC2020")
    return "check_nvBW_gpu_bw: GPU bandwidth Tests with NVBandwidth passed\ncheck_gpu_bw: GPU Bandwidth Tests Passed"


def _ecc(known: view.View, arguments: Sequence[str]) -> str:
    for index in range(2):
        number("check_gpu_ecc", arguments, index)
    if _lost(known):
        text = f"nvidia-smi (get gpu uncorrected counts) returned error code {LOST_EXIT_CODE}"
        raise Failed(f"collect_ecc_data: {text}. {NOT_RUN}")
    for gpu in known.gpus_of(known.me):
        for what, name in (("remap_pending", "pending"), ("remap_failed", "error")):
            if gpu[what]:
                raise Failed(f"check_ecc: GPU id {gpu['index']}: Row remap {name}. FaultCode: NHC2007")
    return "check_gpu_ecc: ECC checks passed"


def _throttling(known: view.View, arguments: Sequence[str]) -> None:
    """Warns about GPUs that hardware slows down (0x8) because of heat (0x40), like the real check."""
    reason = "reason=0x0000000000000048"
    slowed = [f"Warning: GPU {gpu['index']} throttled, {reason}" for gpu in known.gpus_of(known.me) if gpu["slowed"]]
    if slowed:
        raise Warned("\n".join(slowed))


def _nvlink(known: view.View, arguments: Sequence[str]) -> str:
    if _lost(known):
        text = f"Failed to get NVLINK status with error code {LOST_EXIT_CODE}"
        raise Failed(f"check_nvlink_status: {text}. FaultCode: NHC2016")
    for gpu in known.gpus_of(known.me):
        if gpu["lost_links"]:
            links = ", ".join(f"Link {link}: Inactive" for link in gpu["lost_links"])
            text = f"GPU {gpu['index']} has nvlinks inactive: {links}"
            raise Failed(f"check_nvlink_status: {text}. FaultCode: NHC2016")
    gpus = range(len(known.gpus_of(known.me)))
    return "\n".join(f"check_nvlink_status: GPU {gpu} has all nvlinks active." for gpu in gpus)


def _allreduce(known: view.View, arguments: Sequence[str]) -> str:
    """The arguments are a limit in GB/s, repeats, message size, and an unused topology file."""
    limit = number("check_nccl_allreduce", arguments, 0)
    found = _bus_bandwidth(known, "nccl_allreduce", arguments[2] if len(arguments) > 2 else "")
    if found < limit:
        text = f"NCCL allreduce, BUS BW (expected >={limit} GB/s, but measured {found} GB/s)"
        raise Failed(f"check_nccl_allreduce: {text}. FaultCode: NHC2010")
    return f"check_nccl_allreduce: NCCL all reduce bandwidth test passed, {found} GB/s"


def _loopback(known: view.View, arguments: Sequence[str]) -> str:
    name = "check_nccl_allreduce_ib_loopback"
    limit = number(name, arguments, 0)
    _bus_bandwidth(known, "nccl_allreduce (IB loopback)", arguments[2] if len(arguments) > 2 else "")
    rates = [hca["gbps"] if hca["state"] == "ACTIVE" else 0 for hca in _hcas(known)]
    found = min(rates, default=0) / 8 * float(view.numbers()["loopback_fraction"])
    if found < limit:
        text = f"NCCL allreduce, BUS BW (expected >={limit} GB/s, but measured {found:g} GB/s)"
        raise Failed(f"{name}: {text}. FaultCode: NHC2003")
    return f"{name}: NCCL allreduce IB loopback bandwidth test passed, {found:g} GB/s"


def _bus_bandwidth(known: view.View, what: str, size: str) -> float:
    gpus = known.gpus_of(known.me)
    ranks = [Rank(known.me, index, len(gpus)) for index in range(len(gpus))]
    command = ["all_reduce_perf", "-b", size, "-f", "2", "-g", "1", "-e", size, "-c", "1"]
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = nccl_tests.run(ranks, command, {**os.environ, **NCCL_VARIABLES}, known) if ranks else 1
    if code:
        raise Failed(f"collect_nccl_allreduce_data: {what} returned error code {code}. {NOT_RUN}")
    average = re.search(r"# Avg bus bandwidth\s*: (\S+)", output.getvalue())
    return float(average[1]) if average else 0.0


def _rdma(known: view.View, arguments: Sequence[str]) -> str:
    limit = number("check_ib_bw_gdr", arguments, 0)
    passed = []
    if not known.me.may_pin_memory or _lost(known):
        raise Failed(f"check_ib_bw_gdr: ib_write_bw returned error code 1. {NOT_RUN}")
    for hca in _hcas(known):
        if hca["state"] != "ACTIVE":
            raise Failed(f"check_ib_bw_gdr: ib_write_bw returned error code 1. {NOT_RUN}")
        found = hca["gbps"] * float(view.numbers()["rdma_write_fraction"])
        if found < limit:
            text = f"ib_write_bw, IB={hca['name']}, {hca['name']}, IB BW (expected > {limit:g} Gbps, but measured"
            raise Failed(f"check_ib_bw_gdr: {text} {found:.2f} Gbps. FaultCode: NHC2003")
        words = f"IB write bandwidth test IB_WRITE_BW passed for IB={hca['name']}, IB BW={found:.2f} Gbps"
        passed.append(f"check_ib_bw_gdr: {words}")
    return "\n".join(passed)


def _hcas(known: view.View) -> list[dict[str, Any]]:
    return [hca for hca in known.hcas_of(known.me) if hca["link_layer"] == "InfiniBand"]


def _healthy(known: view.View) -> list[dict[str, Any]]:
    return [gpu for gpu in known.gpus_of(known.me) if gpu["healthy"]]


def _lost(known: view.View) -> bool:
    return len(_healthy(known)) < len(known.gpus_of(known.me))


def _facts(known: view.View) -> Mapping[str, Any]:
    facts: Mapping[str, Any] = view.numbers()["skus"][known.node_of(known.me)["sku"]]
    return facts


CHECKS: dict[str, Callable[[view.View, Sequence[str]], str | None]] = {
    "check_gpu_count": _count,
    "check_nvsmi_healthmon": _healthmon,
    "check_gpu_xid": _xid,
    "check_gpu_bw": _bandwidth,
    "check_gpu_ecc": _ecc,
    "check_gpu_clock_throttling": _throttling,
    "check_nvlink_status": _nvlink,
    "check_nccl_allreduce": _allreduce,
    "check_nccl_allreduce_ib_loopback": _loopback,
    "check_ib_bw_gdr": _rdma,
}
