"""Why a pod that is on a node does not run. The words are the kubelet's and containerd's."""

from __future__ import annotations

from dataclasses import dataclass

from diagnosis.cluster import Cluster, Object
from diagnosis.finding import Finding, one_line
from diagnosis.images import NEVER, PULLING, WRONG_PLATFORM, never_pulled, pull_failure, wrong_platform
from diagnosis.messages import cause, hidden_by_notice, most_telling

_NEVER_RAN = (
    *PULLING,
    NEVER,
    "InvalidImageName",
    "ImageInspectError",
    "SignatureValidationFailed",
    "CreateContainerConfigError",
    "CreateContainerError",
    "PreCreateHookError",
    "PreStartHookError",
    "PostStartHookError",
    "RunContainerError",
)
"""Reasons of the kubelet for a container that cannot start (pkg/kubelet/images/types.go, kuberuntime)."""
_LOOPS = "CrashLoopBackOff"
_NEVER_STARTED = ("StartError", "ContainerCannotRun")
"""Reasons of containerd and of Docker for a container that ended without a log."""
_EVENTS = (
    "FailedMount",
    "FailedAttachVolume",
    "FailedCreatePodSandBox",
    "FailedCreatePodContainer",
    "FailedMapVolume",
    "NetworkNotReady",
)
_PROGRESS = ("Pulling", "Pulled", "Started")


@dataclass(frozen=True)
class Waiting:
    """What a container that does not run waits for, and how it ended before."""

    reason: str
    message: str
    image: str
    container: str = ""
    ended: str = ""
    """Reason, exit code and message of its last end."""

    @property
    def fails(self) -> bool:
        """Whether something is wrong, and not only under way."""
        return self.reason in (*_NEVER_RAN, _LOOPS)

    @property
    def never_ran(self) -> bool:
        """Whether it has no log."""
        return self.reason in _NEVER_RAN or self.ended.startswith(_NEVER_STARTED)

    def look(self, pod: Object) -> str:
        """The command that shows more of a pod of which it fails."""
        where = f"-n {pod['metadata']['namespace']} {pod['metadata']['name']}"
        if self.never_ran:
            return f"kubectl describe pod {where}"
        several = len(pod["spec"]["containers"]) + len(pod["spec"].get("initContainers", [])) > 1
        return f"kubectl logs {where} --previous{f' -c {self.container}' if several and self.container else ''}"

    @property
    def told(self) -> str:
        parts = [self.reason, self.message, f"it ended with {self.ended}" if self.ended else ""]
        return ": ".join(filter(None, parts))


def waiting(pod: Object) -> Waiting | None:
    """The first container that fails, or else the first that waits; None where no container does."""
    status = pod.get("status", {})
    found = [
        Waiting(
            held.get("reason", ""), held.get("message", ""), container.get("image", ""), container.get("name", ""),
            ended(container.get("lastState")),
        )
        for container in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
        if (held := (container.get("state") or {}).get("waiting"))
    ]  # fmt: skip
    return next(iter(sorted(found, key=lambda each: not each.fails)), None)


def ended(state: Object | None) -> str:
    """How a container ended: reason, exit code, and the message that it or its runtime left; empty if it did not."""
    end = (state or {}).get("terminated") or {}
    if not end.get("exitCode"):
        return ""
    why = end["reason"] if end.get("reason") not in (None, "", "Error") else ""
    code = f"exit code {end['exitCode']}"
    said = f"{why} ({code})" if why else code
    return f"{said}: {end['message']}" if end.get("message") else said


def not_started(cluster: Cluster, pod: Object, push: str) -> Finding | None:
    """Why its containers do not start; None where nothing is known to be wrong. `push` as in `report.report`."""
    metadata = pod["metadata"]
    look = f"kubectl describe pod -n {metadata['namespace']} {metadata['name']}"
    if pod.get("status", {}).get("phase") == "Failed":
        return _rejected(pod, look)
    held = waiting(pod)
    if held is None:
        return None
    if held.reason in PULLING:
        return pull_failure(cluster, pod, held.image, held.message, look, push)
    if held.reason == NEVER:
        return never_pulled(held.image, look)
    if held.reason == "InvalidImageName":
        return Finding(one_line(f"{held.image} is no name of an image: {held.message}"), look, lasts=True)
    if held.fails and WRONG_PLATFORM.search(held.told):
        return wrong_platform(cluster, pod, held.image)
    if held.fails:
        return Finding(one_line(f"pod {metadata['name']}: {cause(held.told)}"), held.look(pod))
    return _from_events(cluster, pod, look)


def _rejected(pod: Object, look: str) -> Finding | None:
    """A pod that its node did not take: only then has the pod itself a reason (kubelet.go, rejectPod)."""
    status = pod["status"]
    if not status.get("reason") or status.get("containerStatuses"):
        return None
    why = f"node {pod['spec'].get('nodeName')} refused pod {pod['metadata']['name']}: {status['reason']}"
    return Finding(one_line(f"{why}: {status.get('message', '')}"), look)


def _from_events(cluster: Cluster, pod: Object, look: str) -> Finding | None:
    """The failure that has the cause, of those since the last step that succeeded."""
    told = [event for event in cluster.events(pod) if event["reason"] in (*_EVENTS, *_PROGRESS)]
    steps = [index for index, event in enumerate(told) if event["reason"] in _PROGRESS]
    failed = told[steps[-1] + 1 :] if steps else told
    name = pod["metadata"]["name"]
    if not failed:
        started = bool(told) and told[-1]["reason"] == _PROGRESS[0]
        return Finding(one_line(f"pod {name} is being started: {told[-1]['message']}")) if started else None
    event = most_telling(failed)
    if hidden_by_notice(event["message"]):
        why = f"pod {name}: {event['reason']}: {cause(event['message'])}: blobfuse2 only printed that it is old"
        node, image = pod["spec"].get("nodeName"), "mcr.microsoft.com/azurelinux/busybox:1.36"
        log = f"kubectl debug node/{node} -it --image={image} -- tail -n 50 /host/var/log/blobfuse2.log"
        return Finding(one_line(f"{why}; the cause is in the node's /var/log/blobfuse2.log"), log)
    return Finding(one_line(f"pod {name}: {event['reason']}: {cause(event['message'])}"), look)
