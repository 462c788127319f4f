"""Broken hardware, injected by the user and kept on disk until it is healed: `python -m simulator fault|heal`."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from simulator import paths


class FaultKind(StrEnum):
    """What can go wrong."""

    NODE = "node"
    """The whole node is down."""
    GPU = "gpu"
    """A GPU fell off the bus (Xid 79)."""
    HCA = "hca"
    """An HCA's port is down."""
    LINK = "link"
    """An HCA's link runs at less than its rate (`gbps`)."""
    NVME = "nvme"
    """A local disk is gone; healed, a blank one takes its place."""
    PARTITION = "partition"
    """The node is in an InfiniBand partition of its own, as when AKSInfinibandSupport was not registered."""


NEEDS_DEVICE = {
    FaultKind.GPU: "the GPU's index, e.g. 3",
    FaultKind.HCA: "e.g. mlx5_2",
    FaultKind.LINK: "e.g. mlx5_2",
    FaultKind.NVME: "e.g. nvme3n1",
}


class FaultError(ValueError):
    """A fault that cannot be; the text is for the user."""


@dataclass(frozen=True, order=True)
class Fault:
    """One broken thing. `gbps` (Gb/s) is what is left of a slow link."""

    node: str
    kind: FaultKind
    device: str = ""
    gbps: int = 0

    def __str__(self) -> str:
        parts = [self.kind, self.node, self.device, f"{self.gbps} Gb/s" if self.gbps else ""]
        return " ".join(part for part in parts if part)

    @property
    def place(self) -> tuple[str, FaultKind, str]:
        """Two faults at the same place replace each other."""
        return self.node, self.kind, self.device


def new_fault(kind: str, node: str, device: str = "", gbps: int = 0) -> Fault:
    """Raises FaultError naming what is allowed."""
    try:
        known = FaultKind(kind)
    except ValueError:
        raise FaultError(f"unknown fault kind {kind!r}; kinds are {', '.join(FaultKind)}") from None
    wanted = NEEDS_DEVICE.get(known)
    if wanted and not device:
        raise FaultError(f"a {known} fault needs --device, {wanted}")
    if device and not wanted:
        raise FaultError(f"a {known} fault concerns the whole node; leave --device out")
    if known is FaultKind.LINK and gbps <= 0:
        raise FaultError("a link fault needs --gbps, what is left of the link in Gb/s, e.g. --gbps 100")
    if known is not FaultKind.LINK and gbps:
        raise FaultError(f"--gbps belongs to link faults, not to {known}")
    return Fault(node, known, device, gbps)


class FaultStore:
    """The file that holds the faults; written whole and atomically, so that readers never see half of it."""

    def __init__(self, folder: Path | None = None) -> None:
        self.file = (folder or paths.home()) / "faults.json"

    def load(self) -> tuple[Fault, ...]:
        """Sorted; raises FaultError when the file is not what this module wrote."""
        try:
            entries = json.loads(self.file.read_text())
            return tuple(sorted(new_fault(**entry) for entry in entries))
        except FileNotFoundError:
            return ()
        except (ValueError, TypeError) as error:
            raise FaultError(f"{self.file} is damaged ({error}); delete it to heal everything") from error

    def fault(self, fault: Fault) -> None:
        """Adds it; a fault at the same place is replaced."""
        others = [old for old in self.load() if old.place != fault.place]
        self._save([*others, fault])

    def heal(self, kind: str = "", node: str = "", device: str = "") -> tuple[Fault, ...]:
        """Removes all faults that match what is given, and returns them."""
        faults = self.load()
        healed = tuple(
            fault
            for fault in faults
            if kind in ("", fault.kind) and node in ("", fault.node) and device in ("", fault.device)
        )
        self._save(fault for fault in faults if fault not in healed)
        return healed

    def _save(self, faults: Iterable[Fault]) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps([asdict(fault) for fault in sorted(faults)], indent=2)
        descriptor, name = tempfile.mkstemp(dir=self.file.parent, prefix=".faults-")
        with os.fdopen(descriptor, "w") as stream:
            stream.write(text + "\n")
        Path(name).replace(self.file)
