"""OS disks of GPU nodes, which also store images and container layers.

AKS uses the VM size's own disks where possible (AKS's page on storage, articles/aks/concepts-storage.md): nodes start
sooner, and images of tens of GB are not limited to a managed disk's 100 to 200 MB/s. AKS cannot change the size or type
of a pool's disks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from config.data.skus import VmSku

MIN_OS_DISK_GB, MAX_OS_DISK_GB = 30, 2048
"""AKS's limits for both types of disks. The GB of its API are GiB."""
_MAX_EPHEMERAL_GB = 2040
"""The limit in Azure's page on ephemeral OS disks."""
USUAL_GB = 512
"""The minimum size of a managed disk in AKS's page on storage. The rest of a larger local disk stays at /mnt."""

DiskType = Literal["Managed", "Ephemeral"]


@dataclass(frozen=True)
class OsDisk:
    gb: int
    type: DiskType

    def __str__(self) -> str:
        return f"{self.gb} GB {self.type}"


def os_disk(size: VmSku, gb: int | None = None, kind: DiskType | None = None) -> OsDisk:
    if kind is None:
        kind = "Ephemeral" if (gb or USUAL_GB) <= most_ephemeral(size.os_disk_gib) else "Managed"
    if gb is None:
        most = most_ephemeral(size.os_disk_gib or size.local_gib)
        gb = min(USUAL_GB, most) if kind == "Ephemeral" and most >= MIN_OS_DISK_GB else USUAL_GB
    return OsDisk(gb, kind)


def most_ephemeral(gib: int) -> int:
    return min(gib, _MAX_EPHEMERAL_GB)
