"""Writes the log of a simulated node, `/var/log/syslog`: boots, Xids of GPUs, lost links of HCAs.

Timestamps have rsyslog's format on Ubuntu 24.04. When a fault ends, its lines since the last boot are removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from simulator.host import files
from simulator.world.hardware import FLAPS, NodeHardware

BOOT = "Linux version"
_WITHOUT_PID = "pid='<unknown>', name=<unknown>"
_TEXTS = {
    63: "Row Remapper: New row marked for remapping, reset gpu to activate.",
    64: "Row Remapper: Remapping row has failed.",
    74: "NVLink: fatal error detected on link 0",
    79: "GPU has fallen off the bus.",
}
"""Texts from NVIDIA's driver documentation (Xid Errors). The texts of 64, 74 and other Xids are invented."""
_NETWORKD = "systemd-networkd[801]: "
_WITHOUT_PROCESS = {
    145: "RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x00000004 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)",
    149: "NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x00000004 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)",
    154: "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
}
"""Texts that name no process (NVIDIA/open-gpu-kernel-modules#1150; NVIDIA/NVSentinel, tests of its Xid parser)."""
_OURS = re.compile(
    rf"kernel: NVRM: Xid \(\S+\): (\d+, {re.escape(_WITHOUT_PID)}, |"
    + "|".join(re.escape(f"{code}, {text}") for code, text in _WITHOUT_PROCESS.items())
    + rf")|{re.escape(_NETWORKD)}ib"
)
"""Lines that a fault may have logged. Other lines are never removed."""


def write(file: Path, hardware: NodeHardware) -> None:
    old = file.read_text().splitlines() if file.exists() else []
    if not old or (hardware.booted and hardware.booted > _time(_boots(old)[-1])):
        old.append(_line(datetime.now(UTC), hardware, f"kernel: {BOOT} {hardware.kernel}"))
    since = old.index(_boots(old)[-1]) + 1
    true = [*_xids(hardware), *_carriers(hardware)]
    kept = [line for line in old[since:] if _what(line) in true or not _OURS.match(_what(line))]
    there = {_what(line) for line in kept}
    new = [_line(time, hardware, text) for time, text in _times(text for text in true if text not in there)]
    files.replace(file, "\n".join([*old[:since], *kept, *new, ""]))


def _xids(hardware: NodeHardware) -> Iterator[str]:
    for gpu in hardware.gpus:
        yield from (f"kernel: NVRM: Xid (PCI:{gpu.pci.rpartition('.')[0].upper()}): {_xid(code)}" for code in gpu.xids)


def _xid(code: int) -> str:
    by_default = f"{_WITHOUT_PID}, {_TEXTS.get(code, 'simulated')}"
    return f"{code}, {_WITHOUT_PROCESS.get(code, by_default)}"


def _carriers(hardware: NodeHardware) -> Iterator[str]:
    """Yields lines about lost links. The link of mlx5_2 is ibP259p0s0.

    systemd names a link by the domain of its PCI function. On Azure, the domain of mlx5_0 is 257 (0x101).
    """
    for hca in hardware.hcas:
        if hca.flapping:
            yield f"{_NETWORKD}ibP{257 + int(hca.name.removeprefix('mlx5_'))}p0s0: Lost carrier"


def _times(texts: Iterable[str]) -> Iterator[tuple[datetime, str]]:
    """A flapping link has been lost once a minute until now."""
    now = datetime.now(UTC)
    for text in texts:
        if not text.startswith(_NETWORKD):
            yield now, text
            continue
        for flap in reversed(range(FLAPS)):
            lost = now - timedelta(minutes=flap)
            yield lost, text
            yield lost, text.replace("Lost", "Gained")


def _line(time: datetime, hardware: NodeHardware, text: str) -> str:
    return f"{time.isoformat(timespec='microseconds')} {hardware.node} {text}"


def _what(line: str) -> str:
    """Returns a line's text. For a restored link (Gained), returns the text of its loss (Lost)."""
    return " ".join(line.split(" ")[2:]).replace("Gained", "Lost")


def _boots(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if f" kernel: {BOOT} " in line]


def _time(line: str) -> float:
    return datetime.fromisoformat(line.split(" ")[0]).timestamp()
