"""What a cluster and its nodes ask of Azure: `simulator/azure/data_plane.py` answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from simulator.world.azure_services import BlobService, Entra


class Cloud(Protocol):
    """Azure as clusters and kubelets reach it."""

    @property
    def blobs(self) -> BlobService | None:
        """The service of all storage accounts; None where there is no Azure."""

    @property
    def proxy(self) -> str:
        """URL of the proxy that reaches names as nodes do; empty where there is no Azure."""

    def at(self, cluster_id: str) -> Cloud:
        """As the nodes of a cluster reach it."""

    def blob_service(self, account: str) -> BlobService:
        """In place of https://<account>.blob.core.windows.net. Raises OSError where that name leads nowhere."""

    def issuer(self, cluster_id: str) -> str:
        """Whom the tokens of a cluster's service accounts name as their issuer; empty where AKS publishes none."""

    def entra(self, cluster_id: str) -> Entra | None:
        """None for a cluster that people do not log in to by Entra."""

    def names(self, cluster_id: str) -> Sequence[str]:
        """Those of a private cluster's API server; of others none, since they are reached here by their address."""

    def storage_token(self, client_id: str, assertion: str) -> tuple[str, int]:
        """A managed identity's token for blobs, for a service account's; when it ends (seconds since 1970).

        Raises PermissionError with Entra's words.
        """

    def share_refusal(self, cluster_id: str, group: str, account: str, *, nfs: bool) -> str | None:
        """Why a cluster's control plane cannot make a share in an account, in Resource Manager's words, or None.

        Without a group, the account is in that of the cluster's nodes.
        """

    def nfs_refusal(self, server: str, export: str) -> str | None:
        """Why nodes cannot mount `<server>:<export>`, in the words of mount.nfs; None where they can."""

    def may_pull(self, cluster_id: str, image: str) -> str | None:
        """Why a cluster's kubelet identity cannot pull an image, in containerd's words; None where it can."""


class NoCloud:
    """No Azure: no storage account, and every image is there. Implements Cloud."""

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
        raise PermissionError("there is no Entra ID")

    def share_refusal(self, cluster_id: str, group: str, account: str, *, nfs: bool) -> str | None:
        return "there is no Azure"

    def nfs_refusal(self, server: str, export: str) -> str | None:
        return f"mount.nfs: Failed to resolve server {server}: Name or service not known"

    def may_pull(self, cluster_id: str, image: str) -> str | None:
        return None
