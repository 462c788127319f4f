"""Refuses to update what is in a stopped cluster (`az aks stop`): its API server does not answer.

Without this check, Pulumi's Kubernetes provider advises to forget all objects of the cluster, and these would run on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi_azure_native import containerservice

from config.problems.errors import lines


def check_running(platform: Mapping[str, Any], stack: str) -> None:
    """Raises pulumi.RunError if the cluster of a shared platform is stopped.

    A cluster that cannot be looked up counts as running: users of a platform may have no rights in Azure.

    Args:
        platform: The outputs of the platform's stack.
        stack: The stack that is deployed.
    """
    group, name = platform["resourceGroup"], platform["clusterName"]
    try:
        cluster = containerservice.get_managed_cluster(resource_name=name, resource_group_name=group)
    except Exception:  # noqa: BLE001 - invokes raise bare exceptions
        return
    if is_stopped(cluster):
        raise pulumi.RunError(stopped_refusal(group, name, stack))


def is_stopped(cluster: containerservice.GetManagedClusterResult | None) -> bool:
    """Returns whether Azure reports that the cluster is stopped."""
    return bool(cluster and cluster.power_state and cluster.power_state.code == "Stopped")


def stopped_refusal(group: str, cluster: str, stack: str) -> str:
    """Returns the error for a stopped cluster. Only starting or deleting it is possible."""
    return lines(
        f"the cluster {cluster} is stopped (powerState is Stopped): its API server does not answer.",
        f"Nothing was changed. Start it, and then `pulumi up -s {stack}` again:",
        f"    az aks start --resource-group {group} --name {cluster}",
    )
