"""Injected faults of hardware and Azure (`python -m simulator fault|heal`), stored on disk until they are healed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from simulator.host import files, paths


class FaultKind(StrEnum):
    NODE = "node"
    GPU = "gpu"
    """A GPU fell off the bus (Xid 79)."""
    ECC = "ecc"
    """A GPU had an uncorrectable ECC error (Xid 63): the next reset remaps a row of its memory."""
    REMAP = "remap"
    """A row of a GPU's memory could not be remapped (Xid 64)."""
    XID = "xid"
    """NVIDIA's driver logged an error of a GPU (`code`)."""
    NVLINK = "nvlink"
    """One of a GPU's NVLinks is inactive (Xid 74)."""
    THERMAL = "thermal"
    """A GPU is too hot, so it reduces its clocks."""
    HCA = "hca"
    """An HCA's port is down."""
    LINK = "link"
    """The link of an HCA runs at a reduced rate (`gbps`)."""
    FLAPPING = "flapping"
    """An HCA's link fails and recovers repeatedly."""
    RAIL = "rail"
    """The switches of a rail, behind the same HCA of every node, carry a reduced rate (`gbps`)."""
    NVME = "nvme"
    """A local disk is gone. Healing replaces it with a blank disk."""
    PARTITION = "partition"
    """A node is in a separate InfiniBand partition, as if AKSInfinibandSupport was not registered."""
    THROTTLE = "throttle"
    """Azure's Resource Manager rejects all requests for `seconds`."""
    CAPACITY = "capacity"
    """Azure has no machine of a VM size left. With `spot`, only Spot pools are limited, to this number of machines."""
    PRICE = "price"
    """A Spot machine's price per hour (`usd`) for a VM size."""
    ROLES = "roles"
    """Role assignments that are made during the fault have no effect, and new identities are not found."""
    LOCK = "lock"
    """A management lock (`level`) on the subscription, every resource group, or one group (`scope`)."""
    POLICY = "policy"
    """An organization's policy requires a tag (`tag`) on resource groups."""
    NODE_SETUP = "node-setup"
    """The script that sets up new machines as nodes fails (exit code `code`)."""


OF_AZURE = frozenset(
    {
        FaultKind.THROTTLE,
        FaultKind.CAPACITY,
        FaultKind.PRICE,
        FaultKind.ROLES,
        FaultKind.LOCK,
        FaultKind.POLICY,
        FaultKind.NODE_SETUP,
    }
)
OF_ALL_NODES = frozenset({*OF_AZURE, FaultKind.RAIL})
HEALED_BY_REBOOT = frozenset({FaultKind.ECC, FaultKind.XID})
"""Faults that a GPU reset, and so a reboot, fixes.

Other faults stay with the machine. A GPU off the bus needs a restart of the physical host (inferred).
"""
OF_GPU = frozenset({FaultKind.GPU, FaultKind.ECC, FaultKind.REMAP, FaultKind.XID, FaultKind.NVLINK, FaultKind.THERMAL})
"""Faults whose device is the index of a GPU."""
MAX_XID = 999
LOCK_LEVELS = ("CanNotDelete", "ReadOnly")
_SIZE = "the VM size, e.g. Standard_ND96isr_H100_v5"
_NEEDS: Mapping[FaultKind, Mapping[str, str]] = {
    **{kind: {"device": "the GPU's index, e.g. 3"} for kind in OF_GPU},
    FaultKind.XID: {"device": "the GPU's index, e.g. 3", "code": "the Xid, e.g. 48"},
    FaultKind.HCA: {"device": "e.g. mlx5_2"},
    FaultKind.FLAPPING: {"device": "e.g. mlx5_2"},
    FaultKind.LINK: {"device": "e.g. mlx5_2", "gbps": "the remaining rate in Gb/s, e.g. 100"},
    FaultKind.RAIL: {"device": "e.g. mlx5_2", "gbps": "the remaining rate of each link in Gb/s, e.g. 100"},
    FaultKind.NVME: {"device": "e.g. nvme3n1"},
    FaultKind.THROTTLE: {"seconds": "the duration in seconds, e.g. 30"},
    FaultKind.CAPACITY: {"size": _SIZE},
    FaultKind.POLICY: {"tag": "the tag's name, e.g. CostCenter"},
    FaultKind.NODE_SETUP: {"code": "the exit code, e.g. 50"},
    FaultKind.PRICE: {"size": _SIZE, "usd": "what a Spot machine of it costs in an hour, e.g. 0.25"},
    FaultKind.LOCK: {"level": " or ".join(LOCK_LEVELS), "scope": "subscription, group, or a resource group's name"},
}
"""The required options of each kind. Faults of nodes also accept `node`, and all accept `seconds`."""


class FaultError(ValueError):
    """An invalid fault. The message is for the user."""


@dataclass(frozen=True, order=True)
class Fault:
    """One fault, which ends after `seconds` if set. `gbps` (Gb/s) is the remaining rate of a slow link or rail."""

    node: str
    kind: FaultKind
    device: str = ""
    gbps: int = 0
    size: str = ""
    seconds: int = 0
    code: int = 0
    """An Xid, or the node set-up script's exit code."""
    level: str = ""
    scope: str = ""
    """A lock's scope: `subscription`, `group` for every resource group, or a group's name."""
    tag: str = ""
    spot: int | None = field(default=None, compare=False)
    """The number of machines left for Spot pools (capacity faults)."""
    usd: float = field(default=0.0, compare=False)
    """A machine's price per hour (price faults)."""
    since: float = field(default=0.0, compare=False)
    """The start, in seconds since 1970."""

    def __str__(self) -> str:
        left, lasts = (f"{self.gbps} Gb/s" if self.gbps else ""), (f"for {self.seconds} s" if self.seconds else "")
        code = f"{'exit code' if self.kind is FaultKind.NODE_SETUP else 'Xid'} {self.code}" if self.code else ""
        spot = "" if self.spot is None else f"{self.spot} Spot"
        usd = f"{self.usd:g} USD" if self.usd else ""
        of_azure = (usd, self.size, self.level, self.scope, self.tag)
        parts = (self.kind, self.node, self.device, code, left, spot, *of_azure, lasts)
        return " ".join(part for part in parts if part)

    @property
    def place(self) -> tuple[str, FaultKind, str, str, int, str]:
        """The key: a new fault replaces an old one with the same key."""
        code = self.code if self.kind is FaultKind.XID else 0
        return self.node, self.kind, self.device, self.size, code, self.scope or self.tag

    def remaining(self, now: float) -> float:
        return self.since + self.seconds - now if self.seconds else float("inf")


def new_fault(
    kind: str,
    node: str = "",
    device: str = "",
    gbps: int = 0,
    *,
    size: str = "",
    seconds: int = 0,
    code: int = 0,
    level: str = "",
    scope: str = "",
    tag: str = "",
    spot: int | None = None,
    usd: float = 0.0,
    since: float = 0.0,
) -> Fault:
    """Creates a fault. Raises FaultError, which names the allowed values."""
    try:
        known = FaultKind(kind)
    except ValueError:
        raise FaultError(f"unknown fault kind {kind!r}: use one of {', '.join(FaultKind)}") from None
    for option, number in (("seconds", seconds), ("gbps", gbps), ("code", code), ("usd", usd)):
        if not 0 <= number < float("inf"):
            raise FaultError(f"--{option} {number:g}: must be above 0")
    if code > MAX_XID:
        raise FaultError(f"--code {code}: Xids and exit codes have at most three digits")
    if spot is not None and (spot < 0 or known is not FaultKind.CAPACITY):
        raise FaultError(f"--spot {spot}: must be 0 or more, and only with a capacity fault")
    if level and level not in LOCK_LEVELS:
        raise FaultError(f"--level {level}: must be {' or '.join(LOCK_LEVELS)}")
    given = {"node": node, "device": device, "gbps": gbps, "size": size, "seconds": seconds, "code": code, "usd": usd}
    given |= {"level": level, "scope": scope, "tag": tag}
    for option, value in given.items():
        takers = [taker for taker in FaultKind if _takes(taker, option)]
        hint = _NEEDS.get(known, {}).get(option)
        if hint and not value:
            raise FaultError(f"a {known} fault needs --{option}, {hint}")
        if value and known not in takers:
            raise FaultError(f"--{option} belongs to {', '.join(takers)} faults, not to {known}: leave --{option} out")
    return Fault(node, known, device, gbps, size, seconds, code, level, scope, tag, spot, usd, since)


def _takes(kind: FaultKind, option: str) -> bool:
    return option == "seconds" or option in _NEEDS.get(kind, {}) or (option == "node" and kind not in OF_ALL_NODES)


class FaultStore:
    """The file of all faults, which changes atomically."""

    def __init__(self, folder: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        """`clock` returns seconds since 1970."""
        self.file = (folder or paths.home()) / "faults.json"
        self.clock = clock

    def load(self) -> tuple[Fault, ...]:
        """Returns active faults, sorted. Raises FaultError if the file is damaged."""
        try:
            entries = json.loads(self.file.read_text())
            faults = sorted(new_fault(**entry) for entry in entries)
            return tuple(fault for fault in faults if fault.remaining(self.clock()) > 0)
        except FileNotFoundError:
            return ()
        except (ValueError, TypeError) as error:
            raise FaultError(f"{self.file} is damaged ({error}); delete the file to remove all faults") from error

    def find(self, kind: FaultKind, size: str = "") -> Fault | None:
        """Returns the fault of Azure with this kind and VM size, or None."""
        return next((fault for fault in self.load() if (fault.kind, fault.size) == (kind, size)), None)

    def fault(self, fault: Fault) -> None:
        others = [old for old in self.load() if old.place != fault.place]
        self._save([*others, replace(fault, since=self.clock())])

    def heal(self, kind: str = "", node: str = "", device: str = "") -> tuple[Fault, ...]:
        faults = self.load()
        healed = tuple(
            fault
            for fault in faults
            if kind in ("", fault.kind) and node in ("", fault.node) and device in ("", fault.device)
        )
        self._save(fault for fault in faults if fault not in healed)
        return healed

    def remove(self, fault: Fault) -> None:
        self._save(each for each in self.load() if each != fault)

    def reboot(self, node: str) -> tuple[Fault, ...]:
        return tuple(fault for kind in sorted(HEALED_BY_REBOOT) for fault in self.heal(kind, node))

    def _save(self, faults: Iterable[Fault]) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps([asdict(fault) for fault in sorted(faults)], indent=2)
        files.replace(self.file, text + "\n")
