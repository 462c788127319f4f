"""The StorageClasses that AKS makes: an entry of `storage_classes.yaml` for each kind of volume."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from config.data import data

AKS_SHARED_CLASS = "azurefile-csi"
"""The class of shares that pods of several nodes mount, in every cluster."""


@dataclass(frozen=True)
class AksClasses:
    """Names of the classes, by what their volumes are."""

    files: tuple[str, ...]
    """Shares by SMB, in an account with a public address, which nodes mount together."""
    disks: tuple[str, ...]
    """Each on one node at a time."""
    blobs: tuple[str, ...]
    """Containers, in which no file can be locked (Azure's pages on known issues of NFS 3.0, and of BlobFuse)."""

    @property
    def all(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.files, *self.disks, *self.blobs)


@functools.cache
def aks_classes() -> AksClasses:
    """As the data file has them."""
    return AksClasses(**{kind: tuple(names) for kind, names in data.read("storage_classes.yaml").items()})
