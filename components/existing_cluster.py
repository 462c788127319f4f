"""What AKS does not change in a cluster that is up: it takes no minor version back, skips none, and keeps Entra."""

from __future__ import annotations

from collections.abc import Iterator

from pulumi_azure_native import containerservice

from config.facts.versions import versions
from config.problems.fixes import Fix, set_command
from config.schema.models import Settings

_VERSION, _ENTRA = ("cluster", "kubernetesVersion"), ("cluster", "entra")


def cluster_refusals(settings: Settings, cluster: containerservice.GetManagedClusterResult) -> Iterator[str]:
    """Yields an error for each setting that AKS would refuse, or ignore, for the cluster that is there.

    Versions: https://learn.microsoft.com/azure/aks/upgrade-aks-cluster. Those without support, or with long-term
    support alone, may skip some (tests/truth/recordings/clusters.yaml).
    Entra "can't be disabled": https://learn.microsoft.com/azure/aks/enable-authentication-microsoft-entra-id.
    """
    wanted, runs = settings.cluster.kubernetes_version, cluster.current_kubernetes_version or ""
    stack, step = settings.stack, _minor(wanted) - _minor(runs) if runs else 0
    is_regular = runs.rpartition(".")[0] in versions().kubernetes.newest
    if step < 0 or (step > 1 and is_regular):
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
