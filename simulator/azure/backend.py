"""What runs behind a managed cluster."""

from __future__ import annotations

from typing import Any, Protocol

Node = dict[str, Any]


class ClusterBackend(Protocol):
    """Kubernetes control planes, one per managed cluster. Every method may be called again after a crash."""

    def create(self, cluster_id: str) -> None:
        """Boots the control plane, or finds it running; returns when its API server is ready."""

    def delete(self, cluster_id: str) -> None:
        """Stops the control plane and removes all of its state; nothing to do when there is none."""

    def admin_kubeconfig(self, cluster_id: str) -> str:
        """A kubeconfig (YAML) with an administrator's client certificate; KeyError while the cluster is down."""

    def set_nodes(self, cluster_id: str, nodes: list[Node]) -> None:
        """Makes the cluster have exactly these nodes: adds, updates labels and taints, removes."""
