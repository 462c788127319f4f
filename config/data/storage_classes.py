from __future__ import annotations

import functools
from dataclasses import dataclass

from config.data import data

AKS_SHARED_CLASS = "azurefile-csi"
"""Pods of several nodes can mount its shares; every cluster has it."""


@dataclass(frozen=True)
class AksClasses:
    files: tuple[str, ...]
    """SMB shares, in an account with a public address, which several nodes can mount."""
    disks: tuple[str, ...]
    """One node mounts a disk at a time."""
    blobs: tuple[str, ...]
    """Blob containers do not support file locks (Azure's pages on known issues of NFS 3.0, and of BlobFuse)."""

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.files, *self.disks, *self.blobs)


@functools.cache
def aks_classes() -> AksClasses:
    return AksClasses(**{kind: tuple(names) for kind, names in data.read("storage_classes.yaml").items()})
