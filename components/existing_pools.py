"""What an update does to a cluster and to GPU pools that are up.

AKS takes no minor version back, skips none, and keeps Entra. Warnings: bounds of the autoscaler that exclude the nodes
which a pool has, and nodes that the update removes, with their pods and what these wrote to the nodes' disks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pulumi_azure_native import containerservice

from config.facts.versions import versions
from config.problems.errors import Problem
from config.problems.fixes import Fix, Path, path_text, set_command
from config.schema.models import Settings
from config.schema.pools import agent_pool_name

_VERSION, _ENTRA = ("cluster", "kubernetesVersion"), ("cluster", "entra")


def excluded_nodes(settings: Settings, cluster: containerservice.GetManagedClusterResult | None) -> Iterator[str]:
    """Yields a warning for each pool with more nodes than its `max`, or that starts to autoscale with fewer than `min`.

    AKS refuses such a count in a new pool (kubernetes-sigs/cluster-api-provider-azure#5947). It accepts any bounds for
    a pool that autoscales already (Azure/AKS#1758), which keeps nodes above `max` (MicrosoftDocs/azure-docs#123150). No
    source is certain for a pool that starts to autoscale.
    """
    there = {pool.name: pool for pool in (cluster.agent_pool_profiles if cluster else None) or ()}
    for key, pool in settings.gpu_pools().items():
        has, bounds = there.get(agent_pool_name(key, pool)), pool.autoscale
        if has is None or bounds is None:
            continue
        count, scales = has.count or 0, has.enable_auto_scaling
        unsure = "AKS may refuse bounds that exclude them", "and any bounds once the pool autoscales"
        if count > bounds.max:
            effect, allowed = ("this update removes none, and none is added", "which keeps them") if scales else unsure
            bound, value, limit = "max", bounds.max, "least"
        elif count < bounds.min and not scales:
            (effect, allowed), bound, value, limit = unsure, "min", bounds.min, "most"
        else:
            continue
        path = ("pools", key, "autoscale", bound)
        what = f"is {value}, but the pool has {count} nodes: {effect}"
        yield Problem(path, what, f"at {limit} {count}, {allowed}", set_command(path, count)).text(settings.stack)


def cluster_refusals(settings: Settings, cluster: containerservice.GetManagedClusterResult) -> Iterator[str]:
    """Yields an error for each setting that AKS would refuse, or ignore, for the cluster that is there.

    Versions: https://learn.microsoft.com/azure/aks/upgrade-aks-cluster; one that AKS no longer supports may skip some.
    Entra "can't be disabled": https://learn.microsoft.com/azure/aks/enable-authentication-microsoft-entra-id.
    """
    wanted, runs = settings.cluster.kubernetes_version, cluster.current_kubernetes_version or ""
    stack, step = settings.stack, _minor(wanted) - _minor(runs) if runs else 0
    is_supported = runs.rpartition(".")[0] in versions().kubernetes.offered(lts=settings.cluster.lts)
    if step < 0 or (step > 1 and is_supported):
        following = f"1.{_minor(runs) + 1}"
        why = "AKS takes no version back" if step < 0 else f"AKS skips no minor version; {following} comes first"
        fix = set_command(_VERSION, f"1.{_minor(runs)}" if step < 0 else following)
        yield _refusal(f"cluster.kubernetesVersion is {wanted}, but the cluster runs {runs}: {why}.", fix, stack)
    if not settings.cluster.entra and cluster.aad_profile and cluster.aad_profile.managed:
        what = "cluster.entra is false, but the cluster has Entra, which AKS never turns off."
        yield _refusal(what, set_command(_ENTRA, "true"), stack)


def _minor(version: str) -> int:
    return int(version.split(".")[1])


def _refusal(what: str, fix: Fix, stack: str) -> str:
    return f"{what} Nothing was changed. Do this, and then `pulumi up` again:\n    {fix.text(stack)}"


def removed_nodes(settings: Settings, outputs: Mapping[str, Any], counts: Mapping[str, int]) -> Iterator[str]:
    """Yields a warning for each pool of the last update that loses nodes.

    Args:
        settings: The settings of this update.
        outputs: The stack's outputs of the last update, of which `pools` has the pools' names in ARM by their keys.
        counts: How many nodes each pool of the cluster has now, by its name in ARM.
    """
    names = {key: agent_pool_name(key, pool) for key, pool in settings.gpu_pools().items()}
    wanted = {names[key]: pool for key, pool in settings.gpu_pools().items()}
    for key, name in sorted({*outputs.get("pools", {}).items(), *names.items()}):  # an `up` that failed has no outputs
        has, pool = counts.get(name, 0), wanted.get(name)
        # A lower `autoscale.max` removes no node (MicrosoftDocs/azure-docs#123150).
        left = 0 if pool is None else has if pool.autoscale else pool.count
        if left < has:
            path: Path = ("pools", key, "count") if key in settings.pools else ("nodeCount",)
            keep = set_command(path, has).text(settings.stack)
            why = f", since {path_text(path)} is {left}. To keep them: {keep}\n" if pool else ". "
            yield (
                f"this update removes {has - left} of {has} nodes of pool {key} ({name}){why}"
                "Their pods end, and all that they "
                "wrote to the nodes is deleted: in the scratch folder, and in containers (of a notebook, all outside "
                f"its folder work). What runs there: kubectl get pods -A -o wide | grep aks-{name}-"
            )
