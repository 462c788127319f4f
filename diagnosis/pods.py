"""Why a pod that is on a node does not run. The words are the kubelet's and containerd's."""

from __future__ import annotations

import re
from dataclasses import dataclass

from config.facts.content_tags import content_tag, image_names
from diagnosis.cluster import Cluster, Object
from diagnosis.finding import Finding, one_line

_PULLING = ("ErrImagePull", "ImagePullBackOff")
_NEVER_RAN = (*_PULLING, "InvalidImageName", "CreateContainerConfigError", "CreateContainerError", "RunContainerError")
_FAILS = (*_NEVER_RAN, "CrashLoopBackOff")
_EVENTS = ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "FailedMapVolume")
_PULL = "Pulling"
_REFUSED = re.compile(r"\b40[13]\b|[Uu]nauthorized|[Ff]orbidden|denied")
_NOT_THERE = re.compile(r"not found|manifest unknown")
_REFERENCE = re.compile(r"(?P<host>[^/]+)/(?P<name>[^:@/]+):(?P<tag>[^:@/]+)")


@dataclass(frozen=True)
class Waiting:
    """What the first container that does not run waits for."""

    reason: str
    message: str
    image: str

    @property
    def fails(self) -> bool:
        """Whether something is wrong, and not only under way."""
        return self.reason in _FAILS

    @property
    def never_ran(self) -> bool:
        """Whether it has no log."""
        return self.reason in _NEVER_RAN

    def look(self, pod: Object) -> str:
        """The command that shows more of a pod of which it fails."""
        where = f"-n {pod['metadata']['namespace']} {pod['metadata']['name']}"
        return f"kubectl describe pod {where}" if self.never_ran else f"kubectl logs {where} --previous"

    @property
    def told(self) -> str:
        return f"{self.reason}: {self.message}" if self.message else self.reason


def waiting(pod: Object) -> Waiting | None:
    """None where no container waits."""
    status = pod.get("status", {})
    for container in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
        if found := (container.get("state") or {}).get("waiting"):
            return Waiting(found.get("reason", ""), found.get("message", ""), container.get("image", ""))
    return None


def not_started(cluster: Cluster, pod: Object, push: str) -> Finding | None:
    """Why its containers do not start; None where nothing is known to be wrong. `push` as in `report.report`."""
    metadata = pod["metadata"]
    look = f"kubectl describe pod -n {metadata['namespace']} {metadata['name']}"
    if pod.get("status", {}).get("phase") == "Failed":
        return _rejected(pod, look)
    held = waiting(pod)
    if held is None:
        return None
    if held.reason in _PULLING:
        return _image(held, look, push)
    if held.reason == "InvalidImageName":
        return Finding(one_line(f"{held.image} is no name of an image: {held.message}"), look, lasts=True)
    if held.fails:
        return Finding(one_line(f"pod {metadata['name']}: {held.told}"), held.look(pod))
    return _from_events(cluster, pod, look)


def _rejected(pod: Object, look: str) -> Finding | None:
    """A pod that its node did not take: only then has the pod itself a reason (kubelet.go, rejectPod)."""
    status = pod["status"]
    if not status.get("reason") or status.get("containerStatuses"):
        return None
    why = f"node {pod['spec'].get('nodeName')} refused pod {pod['metadata']['name']}: {status['reason']}"
    return Finding(one_line(f"{why}: {status.get('message', '')}"), look)


def _image(held: Waiting, look: str, push: str) -> Finding:
    """Roles may act late, and then the pull works by itself; an image that is not there has to be pushed."""
    if _REFUSED.search(held.message):
        why = f"its nodes may not pull {held.image}: the role AcrPull is missing, or does not act yet"
        return Finding(one_line(f"{why} ({_end(held.message)})"), look)
    if not _NOT_THERE.search(held.message):
        return Finding(one_line(f"image {held.image} cannot be pulled: {_end(held.message)}"), look)
    return Finding(f"its registry does not have the image {held.image}", _mended(held.image, look, push), lasts=True)


def _mended(image: str, look: str, push: str) -> str:
    """Images of `docker/` are pushed under the tag of their content; any other is the user's own."""
    found = _REFERENCE.fullmatch(image)
    if found and found["name"] in image_names() and found["tag"] == content_tag(found["name"]):
        return push.format(registry=found["host"])
    return f"{look}    # then push it, or name another in the workload's options"


def _end(message: str) -> str:
    """Containerd says the reference three times before the cause."""
    return message.rpartition('": ')[2]


def _from_events(cluster: Cluster, pod: Object, look: str) -> Finding | None:
    told = [event for event in cluster.events(pod) if event.get("reason") in (*_EVENTS, _PULL)]
    if not told:
        return None
    name, latest = pod["metadata"]["name"], told[-1]
    if latest["reason"] == _PULL:
        return Finding(one_line(f"pod {name} is being started: {latest['message']}"))
    return Finding(one_line(f"pod {name}: {latest['reason']}: {latest['message']}"), look)
