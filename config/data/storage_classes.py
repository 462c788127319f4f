"""The StorageClasses that AKS creates, by kind of volume, from `storage_classes.yaml`."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from config.data import data

AKS_SHARED_CLASS = "azurefile-csi"
"""The class of file shares that every cluster has. Pods on several nodes can mount such a share."""


@dataclass(frozen=True)
class AksClasses:
    """Names of classes, by kind of volume."""

    files: tuple[str, ...]
    """SMB shares for several nodes, in an account with a public address."""
    disks: tuple[str, ...]
    """Disks, which one node mounts at a time."""
    blobs: tuple[str, ...]
    """Blob containers, which do not support file locks (Azure's pages on known issues of NFS 3.0, and of BlobFuse)."""

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.files, *self.disks, *self.blobs)


@functools.cache
def aks_classes() -> AksClasses:
    return AksClasses(**{kind: tuple(names) for kind, names in data.read("storage_classes.yaml").items()})
