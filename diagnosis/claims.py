"""Claims of pods that have no volume, and why: in the words of whoever was to make one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from config.facts.near import hint, near
from diagnosis.cluster import CLAIM, STORAGE_CLASS, Cluster, where
from diagnosis.finding import Finding, grouped, one_line
from diagnosis.messages import cause, most_telling
from k8s.objects import Object, condition

_WHY = ("ExternalProvisioning", "FailedBinding", "VolumeMismatch", "ClaimMisbound", "ClaimLost", "ProvisioningFailed")
"""Events of a claim (pkg/controller/volume/events), from a provisioner that is waited for to a volume that failed."""

_NO_CLAIM = re.compile(r'persistentvolumeclaim "([^"]+)" not found')
"""Of Kubernetes' scheduler (pkg/scheduler/framework/plugins/volumebinding)."""
_NO_CLASS = re.compile(r'storageclass\.storage\.k8s\.io "([^"]+)" not found')


def missing_claims(cluster: Cluster, pods: Sequence[Object]) -> Iterator[Finding]:
    """Yields the claims that the scheduler does not find, each once."""
    namespace = pods[0]["metadata"]["namespace"]
    told = [condition(pod, "PodScheduled").get("message", "") for pod in pods]
    for name in sorted({name for message in told for name in _NO_CLAIM.findall(message)}):
        there = [claim["metadata"]["name"] for claim in cluster.all(CLAIM, namespace)]
        if name not in there:
            fix = f"kubectl get pvc -n {namespace}    # create claim {name}, or name another in the pod's spec.volumes"
            yield Finding(f"claim {name} does not exist{hint(near(name, there))}", fix)


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
            if found := _NO_CLASS.search(why):
                classes = [each["metadata"]["name"] for each in cluster.allowed(STORAGE_CLASS)]
                again = "kubectl get storageclass    # a claim keeps its class: delete it and create another"
                yield Finding(f"{one_line(why)}{hint(near(found[1], classes))}", again)
            else:
                yield Finding(one_line(why), f"kubectl describe pvc {where(claim)}")


def _claims(pod: Object) -> Iterator[str]:
    sources = (volume.get("persistentVolumeClaim") for volume in pod["spec"].get("volumes", []))
    return (source["claimName"] for source in sources if source)
