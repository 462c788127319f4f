"""`blkid --probe`, which prints the label of a file system."""

from __future__ import annotations

from simulator.sandbox.library import block

ARGUMENTS = ["--probe", "--output", "value", "--match-tag", "LABEL"]
NOTHING_FOUND = 2


def main(arguments: list[str]) -> int:
    """Returns 0, or 2 if the device has no file system with a label."""
    if arguments[:-1] != ARGUMENTS:
        return block.not_simulated("blkid", arguments)
    try:
        filesystem = block.read(block.disk_name(arguments[-1])).get("filesystem", {})
    except block.Refused as error:
        block.complain("blkid", error)
        return NOTHING_FOUND
    if not filesystem.get("label"):
        return NOTHING_FOUND
    print(filesystem["label"])
    return 0
