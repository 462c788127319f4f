"""What a cluster and its nodes ask of Azure: `simulator/azure/data_plane.py` answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol


class BlobService(Protocol):
    """Where blobs are really served."""

    @property
    def url(self) -> str:
        """HTTPS, without a slash at the end."""

    @property
    def ca_file(self) -> Path:
        """The authority that signed the service's certificate (PEM)."""

    @property
    def proxy(self) -> str:
        """URL of the proxy that leads there; empty where none is needed."""

    def changes(self, container: str, since: int) -> tuple[int, Mapping[str, str | None] | None]:
        """How often a container was written to, and blobs since the given time, by name with their etags.

        No etag is that of a blob that was removed, an empty one of one that only a look tells of; without names, all
        may be other.
        """


class Entra(Protocol):
    """By what an API server knows people, and whom it asks what they may do."""

    @property
    def issuer(self) -> str:
        """Who signs people's tokens, as these say it."""

    @property
    def discovery(self) -> str:
        """URL of what the issuer says of itself, which leads to its keys."""

    @property
    def audience(self) -> str:
        """Whom the tokens must be for."""

    @property
    def ca(self) -> str:
        """The authority (PEM) that signed the certificate of both addresses."""

    @property
    def guard(self) -> str:
        """URL of an authorization webhook; empty where the roles in the cluster alone count."""

    @property
    def token(self) -> str:
        """What the webhook wants to see."""


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
