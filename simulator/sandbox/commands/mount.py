"""`mount -o <options> <device> <folder>`. The node sees the mount if the folder is in a volume with shared mounts."""

from __future__ import annotations

import shutil
from pathlib import Path

from simulator.sandbox.library import block, view

FAILED = 32
"""The exit code of a failed mount (mount(8))."""


def main(arguments: list[str]) -> int:
    if len(arguments) != 4 or arguments[0] != "-o":
        return block.not_simulated("mount", arguments)
    options, device, point = arguments[1], arguments[2], Path(arguments[3])
    try:
        filesystem = _mountable(device, point)
    except block.Refused as error:
        block.complain("mount", error)
        return FAILED
    if any(point.is_relative_to(folder) for folder in view.load_self()["shared"]):
        _mount_on_node(filesystem, point)
        with block.MOUNTS.open("a") as table:
            table.write(f"{device} {point} {filesystem['type']} rw,{options} 0 0\n")
    # Other mounts, which only the container would see, are not simulated.
    return 0


def _mountable(device: str, point: Path) -> block.Json:
    filesystem: block.Json | None = block.read(block.disk_name(device)).get("filesystem")
    if filesystem is None:
        raise block.Refused(f"{point}: wrong fs type, bad option, bad superblock on {device}.")
    if not point.is_dir():
        raise block.Refused(f"{point}: mount point does not exist.")
    if any(point.iterdir()):
        raise block.Refused(f"simulator: {point} is not empty; mounts over files are not simulated")
    return filesystem


def _mount_on_node(filesystem: block.Json, point: Path) -> None:
    kept = block.contents(filesystem)
    if kept.is_dir():
        for entry in sorted(kept.iterdir()):
            shutil.move(entry, point)
