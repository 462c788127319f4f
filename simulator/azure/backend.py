"""What runs behind resources: Kubernetes behind managed clusters, a blob service behind storage accounts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from simulator.azure.blobs.changes import Changes

Node = dict[str, Any]


class ClusterBackend(Protocol):
    """Kubernetes control planes, one per managed cluster. Every method may be called again after a crash."""

    def create(self, cluster_id: str) -> None:
        """Boots the control plane, or finds it running; returns when its API server is ready, with the logins set."""

    def delete(self, cluster_id: str) -> None:
        """Stops the control plane and removes all of its state; nothing to do when there is none."""

    def halt(self, cluster_id: str) -> None:
        """Stops the control plane and keeps its state; nothing to do when it does not run."""

    def rotate(self, cluster_id: str) -> None:
        """Ends what runs and deletes its certificates; `create` makes others."""

    def run(self, cluster_id: str, argv: Sequence[str], folder: Path, token: str) -> tuple[int, str]:
        """Runs kubectl or helm in a folder, as administrator or by a token; returns exit code and output.

        Raises TimeoutError.
        """

    def admin_kubeconfig(self, cluster_id: str) -> str:
        """A kubeconfig (YAML) with an administrator's client certificate; KeyError while the cluster is down.

        A private cluster is named in it as in its zone.
        """

    def api_port(self, cluster_id: str) -> int:
        """Where its API server really is, on 127.0.0.1; KeyError while the cluster is down."""

    def set_storage(self, cluster_id: str, storage_profile: Mapping[str, Any]) -> None:
        """Turns the CSI drivers on and off that the cluster's `storageProfile` names, with their StorageClasses."""

    def set_admins(self, cluster_id: str, groups: Sequence[str]) -> None:
        """Makes these groups (object ids of Entra), and no others, administrators of the cluster."""

    def set_nodes(self, cluster_id: str, nodes: list[Node]) -> Mapping[str, str]:
        """Makes the cluster have exactly these nodes: adds, updates labels and taints, removes.

        Returns why it does not have some, by their names.
        """


class BlobBackend(Protocol):
    """The blob service of all storage accounts. Every method may be called again after a crash."""

    @property
    def endpoint(self) -> str:
        """`https://127.0.0.1:<port>`; an account's blobs are under `/<account>`. The same after every restart."""

    @property
    def ca_file(self) -> Path:
        """The authority (PEM) that signed its certificate."""

    @property
    def changes(self) -> Changes:
        """Which blobs users have written to."""

    def set_accounts(self, accounts: Callable[[], Mapping[str, list[str]]]) -> None:
        """Serves exactly these accounts, each with its keys; returns when it answers. Starts nothing for none.

        They are asked for when no other change goes on, so that the last of several changes is right.
        """

    def create_container(self, account: str, container: str) -> None:
        """Makes a container, or finds it there."""

    def delete_container(self, account: str, container: str) -> None:
        """Removes a container with its blobs; nothing to do when there is none."""

    def clear(self, account: str) -> None:
        """Removes all containers of an account."""
