"""The interface to Azure for clusters and nodes (`simulator/azure/data_plane.py` implements it)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from simulator.world.azure_services import BlobService, Entra


class Cloud(Protocol):
    """The parts of Azure that clusters and kubelets use."""

    @property
    def blobs(self) -> BlobService | None:
        """The blob service that serves all accounts, or None without Azure."""

    @property
    def proxy(self) -> str:
        """The URL of a proxy that resolves DNS names like the nodes. Empty without Azure."""

    def at(self, cluster_id: str) -> Cloud:
        """Returns the interface for one cluster, from the network of its nodes."""

    def blob_service(self, account: str) -> BlobService:
        """Returns the service at https://<account>.blob.core.windows.net. Raises OSError for an unknown name."""

    def issuer(self, cluster_id: str) -> str:
        """Returns the issuer of service account tokens, or an empty string if the cluster has no OIDC issuer."""

    def entra(self, cluster_id: str) -> Entra | None:
        """Returns the cluster's Entra settings, or None if users do not log in with Entra."""

    def names(self, cluster_id: str) -> Sequence[str]:
        """Returns the DNS names of the API server if the cluster is private."""

    def storage_token(self, client_id: str, assertion: str) -> tuple[str, int]:
        """Exchanges a service account token (`assertion`) for a managed identity's token for blob storage.

        Returns the new token, and its expiry time in seconds since 1970. Raises PermissionError with Entra's message.
        """

    def share_refusal(self, cluster_id: str, group: str, account: str, *, nfs: bool) -> str | None:
        """Returns the error of Resource Manager if the control plane cannot create a share in an account, or None.

        An empty `group` means the resource group of the cluster's nodes.
        """

    def nfs_refusal(self, server: str, export: str) -> str | None:
        """Returns mount.nfs's error if nodes cannot mount `<server>:<export>`, or None."""

    def may_pull(self, cluster_id: str, image: str) -> str | None:
        """Returns containerd's error if the kubelet identity cannot pull an image, or None."""


class NoCloud:
    """A cluster without Azure: it has no storage accounts, and can pull every image."""

    blobs = None
    proxy = ""

    def at(self, cluster_id: str) -> NoCloud:
        return self

    def blob_service(self, account: str) -> BlobService:
        raise OSError(f"dial tcp: lookup {account}.blob.core.windows.net: no such host")

    def issuer(self, cluster_id: str) -> str:
        return ""

    def entra(self, cluster_id: str) -> Entra | None:
        return None

    def names(self, cluster_id: str) -> Sequence[str]:
        return ()

    def storage_token(self, client_id: str, assertion: str) -> tuple[str, int]:
        raise PermissionError("this cluster runs without Entra ID")

    def share_refusal(self, cluster_id: str, group: str, account: str, *, nfs: bool) -> str | None:
        return "this cluster runs without Azure"

    def nfs_refusal(self, server: str, export: str) -> str | None:
        return f"mount.nfs: Failed to resolve server {server}: Name or service not known"

    def may_pull(self, cluster_id: str, image: str) -> str | None:
        return None
