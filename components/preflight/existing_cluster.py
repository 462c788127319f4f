"""Checks of updates to an existing cluster and its node pools.

AKS does not downgrade or skip a minor version, and cannot disable Entra. Warnings report autoscaler bounds that exclude
current nodes, and nodes that the update removes.

A stopped cluster (`az aks stop`) is not updated: its API server does not answer, so Pulumi's Kubernetes provider would
advise to remove its objects from the state, although they run again after `az aks start`.

A hook reports how an update of the cluster changes node pools, because the engine's diff is misleading. The program
only declares the system pool in `agentPoolProfiles`, but `pulumi refresh` stores all pools in this property of the
state. The engine then shows the other pools as removed, but Azure keeps them (pulumi-azure-native#579). With
`ignore_changes`, the next update would send the stored list, with old node counts and deleted pools
(pulumi-azure-native#2719).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pulumi
from pulumi.runtime import rpc
from pulumi_azure_native import containerservice

from config.data.versions import versions
from config.problems.errors import Problem, lines
from config.problems.fixes import Fix, Path, path_text, set_command
from config.schema.models import Settings
from config.schema.pools import agent_pool_name

_VERSION, _ENTRA = ("cluster", "kubernetesVersion"), ("cluster", "entra")
PROFILES = "agentPoolProfiles"
Profiles = Mapping[str, Mapping[str, Any]]


def check_running(platform: Mapping[str, Any], stack: str) -> None:
    """Raises pulumi.RunError if the cluster of a shared platform is stopped.

    A cluster that cannot be looked up counts as running: users of a platform may have no rights in Azure. `platform`
    has the outputs of the platform's stack. `stack` is the stack that is deployed.
    """
    group, name = platform["resourceGroup"], platform["clusterName"]
    try:
        cluster = containerservice.get_managed_cluster(resource_name=name, resource_group_name=group)
    except Exception:  # noqa: BLE001 - invokes raise bare exceptions
        return
    if is_stopped(cluster):
        raise pulumi.RunError(stopped_refusal(group, name, stack))


def is_stopped(cluster: containerservice.GetManagedClusterResult | None) -> bool:
    return bool(cluster and cluster.power_state and cluster.power_state.code == "Stopped")


def stopped_refusal(group: str, cluster: str, stack: str) -> str:
    return lines(
        f"the cluster {cluster} is stopped (powerState is Stopped): its API server does not answer.",
        f"Nothing was changed. Start the cluster, and then `pulumi up -s {stack}` again:",
        f"    az aks start --resource-group {group} --name {cluster}",
    )


def excluded_nodes(settings: Settings, cluster: containerservice.GetManagedClusterResult | None) -> Iterator[str]:
    """Yields warnings about pools with more nodes than `max`, or with fewer than `min` when they start to autoscale.

    In a new pool, AKS refuses a count outside the bounds (kubernetes-sigs/cluster-api-provider-azure#5947). If a pool
    already autoscales, AKS accepts any bounds (Azure/AKS#1758), and keeps nodes above `max`
    (MicrosoftDocs/azure-docs#123150). No source states what AKS does when a pool starts to autoscale.
    """
    there = {pool.name: pool for pool in (cluster.agent_pool_profiles if cluster else None) or ()}
    for key, pool in settings.gpu_pools().items():
        has, bounds = there.get(agent_pool_name(key, pool)), pool.autoscale
        if has is None or bounds is None:
            continue
        count, scales = has.count or 0, has.enable_auto_scaling
        unsure = "AKS may refuse this value", "and any value after the pool has begun to autoscale"
        if count > bounds.max:
            effect, allowed = ("AKS adds no nodes and removes none", "which keeps all nodes") if scales else unsure
            bound, value, limit = "max", bounds.max, "least"
        elif count < bounds.min and not scales:
            (effect, allowed), bound, value, limit = unsure, "min", bounds.min, "most"
        else:
            continue
        path = ("pools", key, "autoscale", bound)
        what = f"is {value}, but the pool has {count} nodes: {effect}"
        yield Problem(path, what, f"at {limit} {count}, {allowed}", set_command(path, count)).text(settings.stack)


def cluster_refusals(settings: Settings, cluster: containerservice.GetManagedClusterResult) -> Iterator[str]:
    """Yields an error for each setting that AKS would reject or ignore for the existing cluster.

    Versions: https://learn.microsoft.com/azure/aks/upgrade-aks-cluster. A cluster with a version out of regular support
    may skip minor versions (tests/contract/recordings/clusters.yaml). Entra "can't be disabled":
    https://learn.microsoft.com/azure/aks/enable-authentication-microsoft-entra-id.
    """
    wanted, runs = settings.cluster.kubernetes_version, cluster.current_kubernetes_version or ""
    stack, step = settings.stack, _minor(wanted) - _minor(runs) if runs else 0
    is_regular = runs.rpartition(".")[0] in versions().kubernetes.newest
    if step < 0 or (step > 1 and is_regular):
        following = f"1.{_minor(runs) + 1}"
        why = "AKS cannot downgrade" if step < 0 else f"AKS cannot skip a minor version, so {following} comes first"
        fix = set_command(_VERSION, f"1.{_minor(runs)}" if step < 0 else following)
        yield _refusal(f"cluster.kubernetesVersion is {wanted}, but the cluster runs {runs}: {why}.", fix, stack)
    if not settings.cluster.entra and cluster.aad_profile and cluster.aad_profile.managed:
        what = "cluster.entra is false, but the cluster has Entra, which AKS cannot turn off."
        yield _refusal(what, set_command(_ENTRA, "true"), stack)


def _minor(version: str) -> int:
    return int(version.split(".")[1])


def _refusal(what: str, fix: Fix, stack: str) -> str:
    return f"{what} Nothing was changed. Do this, and then `pulumi up` again:\n    {fix.text(stack)}"


def removed_nodes(settings: Settings, outputs: Mapping[str, Any], counts: Mapping[str, int]) -> Iterator[str]:
    """Yields a warning for each pool of the last update that loses nodes.

    `outputs` are the outputs of the last update. The output `pools` has the ARM names of pools by key. `counts` has the
    current number of nodes by ARM name.
    """
    names = {key: agent_pool_name(key, pool) for key, pool in settings.gpu_pools().items()}
    wanted = {names[key]: pool for key, pool in settings.gpu_pools().items()}
    for key, name in sorted({*outputs.get("pools", {}).items(), *names.items()}):  # a failed `up` has no outputs
        has, pool = counts.get(name, 0), wanted.get(name)
        # A lower `autoscale.max` removes no node (MicrosoftDocs/azure-docs#123150).
        left = 0 if pool is None else has if pool.autoscale else pool.count
        if left < has:
            path: Path = ("pools", key, "count") if key in settings.pools else ("nodeCount",)
            keep = set_command(path, has).text(settings.stack)
            why = f", because {path_text(path)} is {left}. To keep them: {keep}\n" if pool else ". "
            yield (
                f"this update removes {has - left} of {has} nodes of pool {key} ({name}){why}"
                "Pods on these nodes end, and their data on the nodes is deleted: the scratch folder, and files in "
                "containers (in a notebook, all files outside its folder work). "
                f"List the pods: kubectl get pods -A -o wide | grep aks-{name}-"
            )


def report_pool_changes() -> pulumi.ResourceHook:
    """Returns a hook that reports changes of node pools when the cluster is updated, also in previews."""

    def report(update: pulumi.ResourceHookArgs) -> None:
        for line in pool_changes(_profiles(update.old_inputs), _profiles(update.new_inputs)):
            # The message names no resource: the engine may end before it knows the resource's URN.
            pulumi.log.info(line)

    return pulumi.ResourceHook("node pools of the cluster", report, pulumi.ResourceHookOptions(on_dry_run=True))


def pool_changes(before: Profiles, after: Profiles) -> Iterator[str]:
    for name, pool in after.items():
        had = before.get(name, {})
        for key, value in pool.items():
            if had.get(key) != value:
                yield f"node pool {name}: {key} {_shown(had.get(key, 'unset'))} -> {_shown(value)}"
    if kept := sorted(set(before) - set(after)):
        yield (
            f"node pools {', '.join(kept)} stay as they are: a refresh has copied them into the state of the cluster, "
            "and this update removes them from that state again"
        )


def _shown(value: object) -> str:
    if value in (rpc.UNKNOWN, pulumi.UNKNOWN):
        return "known after the update"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _profiles(inputs: Mapping[str, Any] | None) -> Profiles:
    return {pool["name"]: pool for pool in (inputs or {}).get(PROFILES) or () if "name" in pool}
