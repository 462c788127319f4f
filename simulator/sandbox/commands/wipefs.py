"""`wipefs --all`: takes superblocks and file systems off disks."""

from __future__ import annotations

from simulator.sandbox.library import block

FLAGS = {"--quiet", "--all"}


def main(arguments: list[str]) -> int:
    """0, or 1 where a disk is in use."""
    devices = [word for word in arguments if word not in FLAGS]
    if "--all" not in arguments or any(word.startswith("-") for word in devices):
        return block.not_simulated("wipefs", arguments)
    try:
        for device in devices:
            name = block.disk_name(device)
            block.refuse_busy(name)
            block.write(name, {})
    except block.Refused as error:
        return block.complain("wipefs: error", error)
    return 0
