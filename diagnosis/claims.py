"""Claims of pods that have no volume, and why: in the words of whoever was to make one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diagnosis.cluster import CLAIM, Cluster, where
from diagnosis.finding import Finding, grouped, one_line
from diagnosis.messages import cause, most_telling
from k8s.objects import Object

_WHY = ("ExternalProvisioning", "FailedBinding", "VolumeMismatch", "ClaimMisbound", "ClaimLost", "ProvisioningFailed")
"""Events of a claim (pkg/controller/volume/events), from a provisioner that is waited for to a volume that failed."""


def without_volume(cluster: Cluster, pods: Sequence[Object]) -> Iterator[Finding]:
    """Of all that these pods mount, each claim once."""
    mounted = {name for pod in pods for name in _claims(pod)}
    for claim in cluster.all(CLAIM, pods[0]["metadata"]["namespace"]) if mounted else ():
        metadata = claim["metadata"]
        if metadata["name"] not in mounted or claim["status"].get("phase") == "Bound":
            continue
        events = grouped((event["reason"], event) for event in cluster.events(claim) if event["reason"] in _WHY)
        if events:
            event = most_telling(events[max(events, key=_WHY.index)])
            why = f"claim {metadata['name']} has no volume: {cause(event['message'])}"
            yield Finding(one_line(why), f"kubectl describe pvc {where(claim)}")


def _claims(pod: Object) -> Iterator[str]:
    sources = (volume.get("persistentVolumeClaim") for volume in pod["spec"].get("volumes", []))
    return (source["claimName"] for source in sources if source)
