"""`wipefs`: lists the signatures on a disk, or with `--all` removes superblocks and file systems."""

from __future__ import annotations

from simulator.sandbox.library import block

FLAGS = {"--quiet", "--all"}
LIST = ["--noheadings", "--output", "TYPE"]


def main(arguments: list[str]) -> int:
    if arguments[:-1] == LIST:
        return _list(arguments[-1])
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


def _list(device: str) -> int:
    try:
        content = block.read(block.disk_name(device))
    except block.Refused as error:
        return block.complain("wipefs: error", error)
    raid = ["linux_raid_member"] if "raid" in content else []
    filesystem = [content["filesystem"]["type"]] if "filesystem" in content else []
    print("".join(f"{kind}\n" for kind in [*raid, *filesystem, *content.get("signatures", [])]), end="")
    return 0
