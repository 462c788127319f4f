"""OS disks of GPU nodes, which also hold images and what containers write.

AKS takes them from the size's own disks where it may (its page on storage, articles/aks/concepts-storage.md): nodes
start sooner, and an image of tens of GB does not come through a managed disk's 100 to 200 MB/s. It can change neither
size nor type of those that a pool has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from config.data.skus import VmSku

MIN_OS_DISK_GB, MAX_OS_DISK_GB = 30, 2048
"""AKS's, of either type. What its API calls GB are GiB."""
_MAX_EPHEMERAL_GB = 2040
"""Azure's page on ephemeral OS disks."""
USUAL_GB = 512
"""What AKS's page on storage asks of a managed one at least; where there is room for more, the rest stays at /mnt."""

DiskType = Literal["Managed", "Ephemeral"]


@dataclass(frozen=True)
class OsDisk:
    """The OS disk of each node of a pool."""

    gb: int
    type: DiskType

    def __str__(self) -> str:
        return f"{self.gb} GB {self.type}"


def os_disk(size: VmSku, gb: int | None = None, kind: DiskType | None = None) -> OsDisk:
    """What new nodes of that size get, where the settings say no more of it than this."""
    if kind is None:
        kind = "Ephemeral" if (gb or USUAL_GB) <= most_ephemeral(size.os_disk_gib) else "Managed"
    if gb is None:
        most = most_ephemeral(size.os_disk_gib or size.local_gib)
        gb = min(USUAL_GB, most) if kind == "Ephemeral" and most >= MIN_OS_DISK_GB else USUAL_GB
    return OsDisk(gb, kind)


def most_ephemeral(gib: int) -> int:
    """The largest ephemeral OS disk that fits so much local storage."""
    return min(gib, _MAX_EPHEMERAL_GB)
