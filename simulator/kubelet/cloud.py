"""What the nodes of a cluster ask of Azure. `simulator/azure` answers; tests bring answers of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class BlobService:
    """Where the blobs of a storage account are really served: Azurite."""

    url: str
    """Of the account, without a trailing slash; stands for https://<account>.blob.core.windows.net."""
    certificate_authority: str
    """PEM file that the service's certificate is checked against."""


class Cloud(Protocol):
    """Azure as the kubelets of one cluster reach it."""

    def blob_service(self, account: str) -> BlobService | None:
        """None where no storage account has this name: it does not resolve."""

    def pull_refusal(self, image: str) -> str | None:
        """Why the cluster's kubelet identity cannot pull an image, in containerd's words; None where it can.

        Only registries of Azure (`*.azurecr.io`) are known; every other image is taken to be there.
        """


class NoCloud:
    """Without Azure: no storage account, and every image is there. Implements Cloud."""

    def blob_service(self, account: str) -> BlobService | None:
        return None

    def pull_refusal(self, image: str) -> str | None:
        return None
