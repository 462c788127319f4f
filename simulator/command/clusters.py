"""Reads a stack's state before `destroy`: protected resources, locks, clusters, and what blocks deletions in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

import httpx

from k8s.objects import Object
from simulator.azure import locks
from simulator.azure.store import records
from simulator.azure.types.agent_pool.life import stopped as is_stopped
from simulator.azure.types.managed_cluster.rules import TYPE
from simulator.command import diagnosed, pulumi_cli
from simulator.host import paths
from simulator.kube.client import ApiError, KubeClient
from simulator.world.faults import FaultStore

_PROVIDER, _GROUP = "pulumi:providers:kubernetes", "azure-native:resources:ResourceGroup"
_CONTAINER = "azure-native:storage:BlobContainer"
_VOLUME, _PROVISIONED_BY = "PersistentVolume", "pv.kubernetes.io/provisioned-by"
Found = TypeVar("Found")
DELETE_UNREACHABLE = {"PULUMI_K8S_DELETE_UNREACHABLE": "true"}
"""Makes the kubernetes plugin, official or emulated, drop objects of an unreachable cluster from the state."""


def of_stack(stack: str) -> set[str]:
    """Returns the ARM ids of the clusters of the stack's Kubernetes providers. Raises PulumiFailed."""
    providers = [each for each in _resources(stack) if each["type"] == _PROVIDER]
    return {str((each.get("inputs") or {}).get("clusterIdentifier", "")) for each in providers}


def protected(stack: str) -> list[str]:
    """Returns the names of protected resources, at which `destroy` would fail halfway. Raises PulumiFailed."""
    return [each["urn"].rpartition("::")[2] for each in _resources(stack) if each.get("protect")]


def locked(stack: str) -> list[str]:
    """Returns the locks on the stack's resource groups. Azure does not delete a locked group. Raises PulumiFailed."""
    groups = [each.get("id", "").rpartition("/")[2] for each in _resources(stack) if each.get("type") == _GROUP]
    return locks.of_groups(FaultStore().load(), groups)


def _resources(stack: str) -> list[Object]:
    deployment = (pulumi_cli.read("stack", "export", stack=stack) or {}).get("deployment") or {}
    found: list[Object] = deployment.get("resources") or []
    return found


def containers(stack: str) -> list[str]:
    """Returns a stack's blob containers, as account/container. Raises PulumiFailed."""
    ids = [each.get("id", "").split("/") for each in _resources(stack) if each.get("type") == _CONTAINER]
    return sorted(f"{parts[-5]}/{parts[-1]}" for parts in ids)


def are_gone(clusters: Collection[str]) -> bool:
    """Returns whether all clusters are gone. Clusters that are unreachable or being deleted still exist.

    Raises BadRecords.
    """
    known = {record.id.key for record in records(paths.home() / "azure") if record.id.type == TYPE}
    return bool(clusters) and all(each and each.lower() not in known for each in clusters)


def stopped(clusters: Collection[str]) -> list[str]:
    """Returns the `az aks start` commands for stopped clusters. Raises BadRecords."""
    ids = {each.lower() for each in clusters}
    found = [each for each in records(paths.home() / "azure") if each.id.type == TYPE and each.id.key in ids]
    return [
        f"az aks start --resource-group {each.id.group} --name {each.id.name}" for each in found if is_stopped(each)
    ]


def claims(clusters: Iterable[str]) -> list[str]:
    """Returns the claims (namespace/name) that lose their files if the clusters are deleted.

    Skips unreachable clusters. Like components/platform_guard.py, selects claims whose volume a CSI driver provisioned.
    """
    volumes = [volume for each in sorted(clusters) for volume in _read(each, lambda kube: kube.list("v1", _VOLUME))]
    made = [each for each in volumes if _PROVISIONED_BY in (each["metadata"].get("annotations") or {})]
    owners = [each["spec"].get("claimRef") for each in made if "csi" in each["spec"]]
    return sorted(f"{owner['namespace']}/{owner['name']}" for owner in owners if owner)


def blocked_deletions(clusters: Iterable[str]) -> list[str]:
    """Returns why pods in the clusters do not terminate, or why this is unknown. Skips deleted clusters."""
    found: list[str] = []
    for each in sorted(clusters):
        own = paths.cluster(each) / "admin.kubeconfig"
        try:
            found += diagnosed.texts(diagnosed.platform(own)["neverEnding"]) if own.exists() else []
        except diagnosed.DiagnosisFailed as error:
            found.append(f"  python -m diagnosis cannot find the pods that do not end: {error}")
    return found


def _read(cluster: str, read: Callable[[KubeClient], list[Found]]) -> list[Found]:
    own = paths.cluster(cluster) / "admin.kubeconfig"  # the simulator's own file needs neither network nor login
    try:
        with KubeClient.from_kubeconfig(own.read_text()) as kube:
            return read(kube)
    except (OSError, ApiError, httpx.HTTPError):
        return []
