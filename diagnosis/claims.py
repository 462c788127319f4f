"""Claims of pods that have no volume, and why: in the words of whoever was to make one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diagnosis.cluster import CLAIM, Cluster, Object, told_at
from diagnosis.finding import Finding, one_line

_WHY = ("ExternalProvisioning", "FailedBinding", "ProvisioningFailed")
"""Events of a claim: a provisioner is waited for, there is no class, or no volume could be made, which says most."""


def without_volume(cluster: Cluster, pods: Sequence[Object]) -> Iterator[Finding]:
    """Of all that these pods mount, each claim once."""
    mounted = {name for pod in pods for name in _claims(pod)}
    for claim in cluster.all(CLAIM, pods[0]["metadata"]["namespace"]) if mounted else ():
        metadata = claim["metadata"]
        if metadata["name"] not in mounted or claim.get("status", {}).get("phase") == "Bound":
            continue
        told = [event for event in cluster.events(claim) if event.get("reason") in _WHY]
        for event in sorted(told, key=lambda each: (_WHY.index(each["reason"]), told_at(each)))[-1:]:
            why = f"claim {metadata['name']} has no volume: {event['message']}"
            yield Finding(one_line(why), f"kubectl describe pvc -n {metadata['namespace']} {metadata['name']}")


def _claims(pod: Object) -> Iterator[str]:
    sources = (volume.get("persistentVolumeClaim") for volume in pod["spec"].get("volumes") or [])
    return (source["claimName"] for source in sources if source)
