"""The simulated block layer: content of disks, arrays and mounts.

A disk is a file in /run/simulator/dev. It is empty, or JSON with `raid` (an array member's superblock), `filesystem`,
or `signatures` (other types, such as LVM2_member or gpt). An array is a link to such a file, `.arrays/<UUID>`, because
the array's name may change at a restart. The files of an unmounted file system are in `.contents`; `mount` moves them
to the mount point. The kernel's state is in /sys/block and /run/simulator/proc, as on a real node.
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
    """The real command would fail with this message on stderr."""


def disk_name(path: str) -> str:
    """Returns the name of the disk or array at /dev/<name>. Raises Refused if it does not exist."""
    name = path.removeprefix("/dev/")
    if not (DISKS / name).is_file() or not path.startswith("/dev/"):
        raise Refused(f"cannot open {path}: No such file or directory")
    return name


def read(name: str) -> Json:
    text = (DISKS / name).read_text()
    found: Json = json.loads(text) if text else {}
    return found


def write(name: str, content: Json) -> None:
    """Overwrites a disk, and deletes the files of an earlier file system."""
    before = read(name).get("filesystem")
    if before and before != content.get("filesystem"):
        shutil.rmtree(contents(before), ignore_errors=True)
    files.replace((DISKS / name).resolve(), json.dumps(content) if content else "")  # an array is a link


def contents(filesystem: Json) -> Path:
    """Returns the folder with the files of an unmounted file system."""
    return DISKS / ".contents" / str(filesystem["uuid"])


def mounts() -> Iterator[tuple[str, str]]:
    for line in MOUNTS.read_text().splitlines():
        device, point, *_ = line.split()
        yield device, point


def holders(name: str) -> list[str]:
    return sorted(entry.name for entry in (BLOCK / name / "holders").iterdir())


def refuse_busy(name: str) -> None:
    """Raises Refused if the disk or one of its partitions is mounted or belongs to an array."""
    partitions = {entry.name for entry in (BLOCK / name).iterdir() if entry.name.startswith(name)}
    used = {device.removeprefix("/dev/") for device, _ in mounts()}
    if holders(name) or used & {name, *partitions}:
        raise Refused(f"cannot open /dev/{name}: Device or resource busy")


def new_array(number: int, array: str, *, state: str, members: list[str]) -> str:
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
    """Stops an array. Its members keep their content."""
    for member in (BLOCK / name / "slaves").iterdir():
        (BLOCK / member.name / "holders" / name).rmdir()
    shutil.rmtree(BLOCK / name)
    (DISKS / name).unlink()
    (Path("/dev") / name).unlink(missing_ok=True)


def not_simulated(command: str, arguments: list[str]) -> int:
    print(f"simulator: {command} {' '.join(arguments)} is not simulated", file=sys.stderr)
    return 2


def complain(command: str, error: Refused) -> int:
    print(f"{command}: {error}", file=sys.stderr)
    return 1
