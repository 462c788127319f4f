"""The simulated block layer: what is written on disks, which arrays run, what is mounted. Shared by its commands.

A disk is a file in /run/simulator/dev. Empty, it is blank; else it holds as JSON either `raid`, the superblock of a
member, or `filesystem`, or `signatures`, the types of others (LVM2_member, gpt). An array is like a disk; its content
is kept in `.arrays` under its UUID, for its name may be another after a restart. The files of a file system are kept
in `.contents`, and moved to where it is mounted. What the kernel knows is in /sys/block and /run/simulator/proc, as
on a real node.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simulator.host import files

DISKS = Path("/run/simulator/dev")
BLOCK = Path("/sys/block")
MOUNTS = Path("/run/simulator/proc/1/mounts")
Json = dict[str, Any]


class Refused(Exception):
    """What the real command refuses; the text is for stderr."""


def disk_name(path: str) -> str:
    """The name of the disk or array at /dev/<name>. Raises Refused where there is none."""
    name = path.removeprefix("/dev/")
    if not (DISKS / name).is_file() or not path.startswith("/dev/"):
        raise Refused(f"cannot open {path}: No such file or directory")
    return name


def read(name: str) -> Json:
    """What is written on a disk."""
    text = (DISKS / name).read_text()
    found: Json = json.loads(text) if text else {}
    return found


def write(name: str, content: Json) -> None:
    """Overwrites what is on a disk; the files of a file system that was there are gone with it."""
    before = read(name).get("filesystem")
    if before and before != content.get("filesystem"):
        shutil.rmtree(contents(before), ignore_errors=True)
    files.replace((DISKS / name).resolve(), json.dumps(content) if content else "")  # an array's file is linked to


def contents(filesystem: Json) -> Path:
    """Where the files of a file system are while it is not mounted."""
    return DISKS / ".contents" / str(filesystem["uuid"])


def mounts() -> Iterator[tuple[str, str]]:
    """(device, mount point) of each line of the node's table."""
    for line in MOUNTS.read_text().splitlines():
        device, point, *_ = line.split()
        yield device, point


def holders(name: str) -> list[str]:
    """Arrays that a disk is a member of, running or not."""
    return sorted(entry.name for entry in (BLOCK / name / "holders").iterdir())


def refuse_busy(name: str) -> None:
    """Raises Refused for a disk that is mounted or held, or has a partition that is: it can have no second user."""
    partitions = {entry.name for entry in (BLOCK / name).iterdir() if entry.name.startswith(name)}
    used = {device.removeprefix("/dev/") for device, _ in mounts()}
    if holders(name) or used & {name, *partitions}:
        raise Refused(f"cannot open /dev/{name}: Device or resource busy")


def new_array(number: int, array: str, *, state: str, members: list[str]) -> str:
    """Makes /dev/md<number> of the members of the array of that UUID, and returns its name."""
    name = f"md{number}"
    sysfs = BLOCK / name
    for folder in ("md", "slaves", "holders"):
        (sysfs / folder).mkdir(parents=True)
    (sysfs / "md" / "array_state").write_text(state + "\n")
    for member in members:
        (sysfs / "slaves" / member).mkdir()
        (BLOCK / member / "holders" / name).mkdir()
    kept = DISKS / ".arrays" / array
    kept.parent.mkdir(exist_ok=True)
    kept.touch()
    (DISKS / name).symlink_to(kept.relative_to(DISKS))
    device = Path("/dev") / name
    if not device.is_symlink():
        device.symlink_to(DISKS / name)
    return name


def remove_array(name: str) -> None:
    """Takes an array apart; what is on its members stays."""
    for member in (BLOCK / name / "slaves").iterdir():
        (BLOCK / member.name / "holders" / name).rmdir()
    shutil.rmtree(BLOCK / name)
    (DISKS / name).unlink()
    (Path("/dev") / name).unlink(missing_ok=True)


def not_simulated(command: str, arguments: list[str]) -> int:
    """Says that a command is not simulated with these arguments; its exit code."""
    print(f"simulator: {command} {' '.join(arguments)} is not simulated", file=sys.stderr)
    return 2


def complain(command: str, error: Refused) -> int:
    """Prints what a command refuses; its exit code."""
    print(f"{command}: {error}", file=sys.stderr)
    return 1
