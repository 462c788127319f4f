"""`mkfs.xfs` and `mkfs.ext4`, only with the options for force, no discard and a label."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path

from simulator.sandbox.library import block

FLAGS = {"xfs": ["-q", "-f", "-K"], "ext4": ["-q", "-F", "-E", "nodiscard"]}
MAX_LABEL = {"xfs": 12, "ext4": 16}
"""Maximum characters of a label (mkfs.xfs(8), mke2fs(8))."""


def main(arguments: list[str]) -> int:
    command = Path(sys.argv[0]).name
    kind = command.partition(".")[2]
    *flags, option, label, device = arguments if len(arguments) > 2 else ["", "", ""]
    if flags != FLAGS[kind] or option != "-L":
        return block.not_simulated(command, arguments)
    try:
        _make(kind, label, block.disk_name(device))
    except block.Refused as error:
        return block.complain(command, error)
    return 0


def _make(kind: str, label: str, disk: str) -> None:
    if len(label) > MAX_LABEL[kind]:
        raise block.Refused(f"label {label} has more than {MAX_LABEL[kind]} characters")
    block.refuse_busy(disk)
    block.write(disk, {"filesystem": {"type": kind, "label": label, "uuid": str(uuid.uuid4())}})
