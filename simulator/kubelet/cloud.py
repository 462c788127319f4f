"""What the nodes of a cluster ask of Azure: `simulator/azure/data_plane.py` answers."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class BlobService(Protocol):
    """Where the blobs of a storage account are really served."""

    @property
    def url(self) -> str:
        """Stands for https://<account>.blob.core.windows.net; without a slash at the end."""

    @property
    def ca_file(self) -> Path:
        """The authority that signed the service's certificate (PEM)."""


class Cloud(Protocol):
    """Azure as kubelets reach it."""

    def blob_service(self, account: str) -> BlobService | None:
        """None where no storage account has this name: it does not resolve."""

    def may_pull(self, cluster_id: str, image: str) -> str | None:
        """Why a cluster's kubelet identity cannot pull an image, in containerd's words; None where it can."""


class NoCloud:
    """No Azure: no storage account, and every image is there. Implements Cloud."""

    def blob_service(self, account: str) -> BlobService | None:
        return None

    def may_pull(self, cluster_id: str, image: str) -> str | None:
        return None
