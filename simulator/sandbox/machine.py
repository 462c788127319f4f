"""The file system of a simulated node, as seen through hostPath volumes and /sys.

It is deleted with the node. Disks are files in `dev/`. `sys/block/` and `proc/1/mounts` show the kernel's view of the
disks.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from simulator.host import files
from simulator.sandbox import devices, node_log
from simulator.world import hyperv
from simulator.world.hardware import Disk, NodeHardware

KVP_POOL = "var/lib/hyperv/.kvp_pool_3"
MOUNTS = "proc/1/mounts"
OS_RELEASE = "etc/os-release"
SWAPS = "proc/swaps"  # AKS's default: no swap
MODEL_LENGTH = 40
"""NVMe pads a disk's model with blanks to this length (NVM Express, Identify Controller)."""
KERNEL_LOG = "var/log/syslog"
_FOLDERS = ("dev", "etc", "mnt", "proc/1", "sys/block", "var/lib/hyperv", "var/log")


def write(folder: Path, hardware: NodeHardware) -> None:
    for name in _FOLDERS:
        _own(folder, name).mkdir(parents=True, exist_ok=True)
    devices.write_sys(folder / "sys", hardware)
    files.replace(_own(folder, KVP_POOL), hyperv.pool(hardware))
    files.replace(_own(folder, OS_RELEASE), os_release(hardware), mode=0o644)
    files.replace(_own(folder, SWAPS), "Filename\tType\tSize\tUsed\tPriority\n", mode=0o644)
    node_log.write(_own(folder, KERNEL_LOG), hardware)
    os_partition = _write_os_disk(folder, hardware.os_disk)
    for disk in hardware.nvme:
        _write_disk(folder, disk)
    _remove_lost_disks(folder, {disk.name for disk in (hardware.os_disk, *hardware.nvme)})
    if not _own(folder, MOUNTS).exists():
        files.replace(folder / MOUNTS, f"/dev/{os_partition} / ext4 rw,relatime 0 0\n")


def os_release(hardware: NodeHardware) -> str:
    return f'ID={hardware.os_id}\nVERSION_ID="{hardware.os_version}"\n'


def _own(folder: Path, relative: str) -> Path:
    """Returns the path in `folder`. Removes symbolic links, because pods could use them to redirect writes."""
    path = folder
    for part in Path(relative).parts:
        path /= part
        if path.is_symlink():
            path.unlink()
    return path


def _write_os_disk(folder: Path, disk: Disk) -> str:
    partition = f"{disk.name}p1" if disk.name[-1].isdigit() else f"{disk.name}1"
    _write_disk(folder, disk)
    _own(folder, f"sys/block/{disk.name}/{partition}").mkdir(exist_ok=True)
    _own(folder, f"dev/{partition}").touch()
    return partition


def _remove_lost_disks(folder: Path, there: set[str]) -> None:
    block = _own(folder, "sys/block")
    for sysfs in block.iterdir():
        if sysfs.name not in there and not sysfs.name.startswith("md"):
            for member in block.glob(f"md*/slaves/{sysfs.name}"):
                member.rmdir()
                files.replace(_own(folder, f"sys/block/{member.parents[1].name}/md/array_state"), "broken\n")
            shutil.rmtree(sysfs, ignore_errors=True)
            for device in (folder / "dev").glob(f"{sysfs.name}*"):
                device.unlink()


def _write_disk(folder: Path, disk: Disk) -> None:
    sysfs = f"sys/block/{disk.name}"
    for name in ("device", "holders", "slaves"):
        _own(folder, f"{sysfs}/{name}").mkdir(parents=True, exist_ok=True)
    model = disk.model.ljust(MODEL_LENGTH) if disk.name.startswith("nvme") else disk.model
    for name in (f"{sysfs}/device/model", f"{sysfs}/size"):
        _own(folder, name)
    devices.write_files(folder / sysfs, {"device/model": model, "size": str(disk.sectors)})
    _own(folder, f"dev/{disk.name}").touch()
