"""Backends: Kubernetes for managed clusters, a blob service for storage accounts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from simulator.azure.blobs.changes import Changes

Node = dict[str, Any]


class ClusterBackend(Protocol):
    """Kubernetes control planes, one per managed cluster. All methods are idempotent."""

    def create(self, cluster_id: str) -> None:
        """Starts the control plane if it is not running. Returns when the API server is ready and accepts logins."""

    def delete(self, cluster_id: str) -> None:
        """Stops the control plane and removes its state."""

    def halt(self, cluster_id: str) -> None:
        """Stops a running control plane and keeps its state."""

    def rotate(self, cluster_id: str) -> None:
        """Stops the control plane and deletes its certificates; `create` issues new ones."""

    def run(self, cluster_id: str, argv: Sequence[str], folder: Path, token: str) -> tuple[int, str]:
        """Runs kubectl or helm in a folder, as administrator or with a token.

        Returns the exit code and output. Raises TimeoutError.
        """

    def admin_kubeconfig(self, cluster_id: str) -> str:
        """Returns a kubeconfig (YAML) with an administrator's client certificate.

        For a private cluster, the server is the name in the private DNS zone. Raises KeyError if the cluster is down.
        """

    def api_port(self, cluster_id: str) -> int:
        """Returns the API server's port on 127.0.0.1. Raises KeyError if the cluster is down."""

    def set_storage(self, cluster_id: str, storage_profile: Mapping[str, Any]) -> None:
        """Enables or disables CSI drivers and StorageClasses, as set in the cluster's `storageProfile`."""

    def set_admins(self, cluster_id: str, groups: Sequence[str]) -> None:
        """Sets the cluster's administrators to exactly these Entra groups (object ids)."""

    def set_nodes(self, cluster_id: str, nodes: list[Node]) -> Mapping[str, str]:
        """Sets the cluster's nodes, with labels and taints, to exactly `nodes`.

        Returns the reason for each missing node (key: the node's name).
        """


class BlobBackend(Protocol):
    """The blob service of all storage accounts. All methods are idempotent."""

    @property
    def endpoint(self) -> str:
        """`https://127.0.0.1:<port>`. Restarts keep the port. An account's blobs are below `/<account>`."""

    @property
    def ca_file(self) -> Path:
        """The service's CA certificate (PEM)."""

    @property
    def changes(self) -> Changes:
        """The log of blobs that users wrote."""

    def set_accounts(self, accounts: Callable[[], Mapping[str, list[str]]]) -> None:
        """Serves exactly these accounts with their keys. Returns when the service is ready.

        Without accounts, starts nothing. After concurrent calls, the newest accounts are served.
        """

    def create_container(self, account: str, container: str) -> None:
        """Creates the container unless it exists."""

    def delete_container(self, account: str, container: str) -> None:
        """Deletes the container with its blobs, if it exists."""

    def clear(self, account: str) -> None:
        """Deletes all containers of an account."""
