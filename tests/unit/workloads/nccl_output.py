from __future__ import annotations

import os
import subprocess
from pathlib import Path

from simulator.host.paths import ROOT

INFO = "node-0:60:60 [0] NCCL INFO"
INFINIBAND = f"{INFO} Using network IB\n{INFO} Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA"
# Output of NCCL 2.28.9 before any channel, without InfiniBand; before 2.11 also with it.
INITIALISED = "\n".join(
    f"{INFO} {text}"
    for text in (
        "NET/IB : No device found.",
        "NET/Socket : Using [0]eth0:192.0.2.2<0>",
        "Initialized NET plugin Socket",
        "Assigned NET plugin Socket to comm",
        "Using network Socket",
    )
)
SOCKET = f"{INITIALISED}\n{INFO} Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/0"
MEASURED = "time   algbw   busbw #wrong"
HEADER = f"#       size         count      type   redop    root     {MEASURED}     {MEASURED}"


def row(size: int, out_of_place: float, in_place: float, wrong: str = "0") -> str:
    measured = [f"100.0  90.00  {busbw:.2f}  {wrong}" for busbw in (out_of_place, in_place)]
    return "  ".join([f"  {size}  {size // 4}  float  sum  -1", *measured])


def table(*rows: str, transport: str = INFINIBAND) -> str:
    return "\n".join([transport, HEADER, *rows, "# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 100"]) + "\n"


GOOD = row(17179869184, 470, 476)


def ranks(*hosts: str) -> str:
    device = "device  0 [0001:00:00] NVIDIA H100"
    lines = (f"#  Rank {rank:2} Group  0 Pid 2{rank} on {host} {device}" for rank, host in enumerate(hosts))
    return "\n".join(["# Using devices", *lines, ""])


def judge(
    tmp_path: Path, output: str, *, nodes: int = 2, floor: str = "400", expected: str = "450", gpus: str = ""
) -> tuple[int, str]:
    log = tmp_path / "log"
    log.write_text(output)
    limits = {"BUSBW_FLOOR_GBS": floor, "BUSBW_EXPECTED_GBS": expected}
    environment = {"PATH": os.environ["PATH"], "NODES": str(nodes), "GPUS_PER_NODE": gpus, **limits}
    command = ["bash", str(ROOT / "workloads" / "_scripts" / "verdict.sh"), str(log)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.count("VERDICT:") == 1, done
    return done.returncode, done.stdout.strip()
