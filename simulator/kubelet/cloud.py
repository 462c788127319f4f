"""Requests of clusters and nodes to Azure (`simulator/azure/data_plane.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from simulator.world.azure_services import BlobService, Entra


class Cloud(Protocol):
    """Azure, as clusters and kubelets reach it."""

    @property
    def blobs(self) -> BlobService | None:
        """The blob service of all accounts, or None without Azure."""

    @property
    def proxy(self) -> str:
        """URL of the proxy that resolves names like nodes, or empty without Azure."""

    def at(self, cluster_id: str) -> Cloud:
        """Returns Azure as the nodes of a cluster reach it."""

    def blob_service(self, account: str) -> BlobService:
        """Returns the service at https://<account>.blob.core.windows.net. Raises OSError for an unknown name."""

    def issuer(self, cluster_id: str) -> str:
        """Returns the issuer of service account tokens, or empty if AKS publishes none."""

    def entra(self, cluster_id: str) -> Entra | None:
        """Returns the cluster's Entra login, or None."""

    def names(self, cluster_id: str) -> Sequence[str]:
        """Returns the DNS names of a private cluster's API server. Others have only an address."""

    def storage_token(self, client_id: str, assertion: str) -> tuple[str, int]:
        """Exchanges a service account token for an identity's blob token.

        Returns the token and its end in seconds since 1970. Raises PermissionError with Entra's message.
        """

    def share_refusal(self, cluster_id: str, group: str, account: str, *, nfs: bool) -> str | None:
        """Returns why a control plane cannot create a share in an account, or None.

        The message is Resource Manager's. The default group is that of the cluster's nodes.
        """

    def nfs_refusal(self, server: str, export: str) -> str | None:
        """Returns why nodes cannot mount `<server>:<export>` (mount.nfs's message), or None."""

    def may_pull(self, cluster_id: str, image: str) -> str | None:
        """Returns why the kubelet identity cannot pull an image (containerd's message), or None."""


class NoCloud:
    """No Azure: no storage accounts, and every image can be pulled."""

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
