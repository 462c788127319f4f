"""Finds why a pod with a node does not run, from messages of kubelet and containerd."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from diagnosis.cluster import Cluster, where
from diagnosis.finding import Finding, grouped, joined, one_line
from diagnosis.images import NEVER, PULLING, WRONG_PLATFORM, never_pulled, pull_failure, wrong_platform
from diagnosis.messages import cause, hidden_by_notice, is_symptom, most_specific
from k8s.objects import Object, has_ended

_NEVER_RAN = (
    *PULLING, NEVER, "InvalidImageName", "ImageInspectError", "SignatureValidationFailed", "CreateContainerConfigError",
    "CreateContainerError", "PreCreateHookError", "PreStartHookError", "PostStartHookError", "RunContainerError",
)  # fmt: skip
"""Kubelet reasons for a container that cannot start (pkg/kubelet/images/types.go, kuberuntime)."""
_LOOPS = "CrashLoopBackOff"
NEVER_STARTED = ("StartError", "ContainerCannotRun")
"""Reasons of containerd and Docker for a container that ended without a log."""
_EVENTS = (
    "FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "FailedCreatePodContainer", "FailedMapVolume",
    "NetworkNotReady",
)  # fmt: skip
_FAILED = "Failed"
_PROGRESS = ("Pulling", "Pulled", "Started", "SuccessfulAttachVolume")
_VARIES = r"\d+ restarts?|back-off \S+ |[0-9a-f]{8}-[0-9a-f-]{27}"
_KILLED = re.compile(r"Container (\S+) failed (liveness|startup) probe")
"""Message of the kubelet's event Killing (pkg/kubelet/kuberuntime/kuberuntime_manager.go)."""
_DRIVEN_OUT = ("Evicted", "Preempting", "Terminated", "NodeShutdown", "Shutdown", "DeadlineExceeded")
"""Kubelet reasons for ending a pod after accepting it (eviction, preemption and nodeshutdown)."""


@dataclass(frozen=True)
class Waiting:
    """A waiting container: why it waits, and how its last run ended."""

    reason: str
    message: str
    image: str
    container: str = ""
    ended: str = ""
    """The end of its last run: reason, exit code and message; empty before that."""

    @property
    def fails(self) -> bool:
        return self.reason in (*_NEVER_RAN, _LOOPS)

    @property
    def never_ran(self) -> bool:
        return self.reason in _NEVER_RAN or self.ended.startswith(NEVER_STARTED)

    def look(self, pod: Object) -> str:
        if self.never_ran:
            return f"kubectl describe pod {where(pod)}"
        several = len(pod["spec"]["containers"]) + len(pod["spec"].get("initContainers", [])) > 1
        return f"kubectl logs {where(pod)} --previous{f' -c {self.container}' if several and self.container else ''}"

    @property
    def description(self) -> str:
        return joined(self.reason, self.message, f"it ended with {self.ended}" if self.ended else "")


def waiting(pod: Object) -> Waiting | None:
    status = pod["status"]
    found = [
        Waiting(
            held.get("reason", ""), held.get("message", ""), container.get("image", ""), container.get("name", ""),
            ended(container.get("lastState")),
        )
        for container in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
        if (held := container.get("state", {}).get("waiting"))
    ]  # fmt: skip
    return next(iter(sorted(found, key=lambda each: not each.fails)), None)


def ended(state: Object | None) -> str:
    """Returns reason, exit code and message of a container's end; empty if it has not ended."""
    end = (state or {}).get("terminated") or {}
    if "exitCode" not in end:
        return ""
    reason, code = end.get("reason", ""), f"exit code {end['exitCode']}"
    return joined(code if reason in ("", "Error") else f"{reason} ({code})", end.get("message"))


def not_started_pods(cluster: Cluster, pods: Iterable[Object]) -> Iterator[Finding]:
    found = ((pod, not_started(cluster, pod)) for pod in pods)
    for first, *others in grouped((_common(pod, each.why), each) for pod, each in found if each).values():
        more = (
            f"; {len(others)} other {'pod has' if len(others) == 1 else 'pods have'} the same problem" if others else ""
        )
        yield replace(first, why=f"{first.why}{more}")


def _common(pod: Object, why: str) -> str:
    own = [pod["metadata"]["name"], pod["metadata"]["uid"], pod["spec"].get("nodeName", "")]
    return re.sub("|".join([*map(re.escape, filter(None, own)), _VARIES]), "", why)


def not_started(cluster: Cluster, pod: Object) -> Finding | None:
    """Returns why the pod's containers do not start; None if no problem is known."""
    look = f"kubectl describe pod {where(pod)}"
    if pod["status"].get("phase") == "Failed":
        return _rejected(pod, look)
    held = waiting(pod)
    if held is None:
        return _restarted(cluster, pod)
    if held.reason in PULLING:
        return pull_failure(cluster, pod, held.image, held.message, look)
    if held.reason == NEVER:
        return never_pulled(held.image, look)
    if held.reason == "InvalidImageName":
        return Finding(one_line(f"{held.image} is not a valid image name: {held.message}"), look, lasts=True)
    if held.fails and WRONG_PLATFORM.search(held.description):
        return wrong_platform(cluster, pod, held.image, held.description)
    if held.fails:
        if is_symptom(held.message) and (events := [each for each in cluster.events(pod) if each["reason"] == _FAILED]):
            held = replace(held, message=most_specific([{"message": held.message}, *events])["message"])
        why = f"pod {pod['metadata']['name']}: {cause(held.description)}{_probe(cluster, pod, held.container)}"
        return Finding(one_line(why), held.look(pod))
    return _from_events(cluster, pod, look) or _restarted(cluster, pod)


def _restarted(cluster: Cluster, pod: Object) -> Finding | None:
    metadata, status = pod["metadata"], pod["status"]
    if has_ended(pod) or metadata.get("deletionTimestamp"):
        return None
    own, logs = status.get("containerStatuses", []), f"kubectl logs {where(pod)} -c"
    runs = [each["name"] for each in own if "running" in each.get("state", {})]
    for each in [*status.get("initContainerStatuses", []), *own]:
        state, name = each.get("state") or {}, each["name"]
        if runs and each in own and (end := ended(state)):
            why = f"pod {metadata['name']}: container {name} has ended ({end}), but the pod ends only when"
            return Finding(one_line(f"{why} {' and '.join(runs)} ends"), f"{logs} {name}")
        if "running" in state and each.get("restartCount") and (end := ended(each.get("lastState"))):
            times = f"{each['restartCount']} {'restart' if each['restartCount'] == 1 else 'restarts'}"
            why = f"pod {metadata['name']}: container {name} runs again after {times}; it ended with {end}"
            why += _probe(cluster, pod, name)
            return Finding(one_line(why), f"{logs} {name} --previous")
    return None


def _probe(cluster: Cluster, pod: Object, container: str) -> str:
    events = cluster.events(pod)
    killed = [found for each in events if (found := _KILLED.search(each["message"])) and found[1] == container]
    if not killed:
        return ""
    kind = killed[-1][2]
    failed = [each["message"] for each in events if each["message"].lower().startswith(f"{kind} probe")]
    return f": the kubelet killed it, since it failed its {kind} probe{f' ({cause(failed[-1])})' if failed else ''}"


def _rejected(pod: Object, look: str) -> Finding | None:
    """Returns why the node rejected or ended the pod; None if its status has no reason (kubelet.go, rejectPod)."""
    status = pod["status"]
    if not status.get("reason") or status.get("containerStatuses"):
        return None
    verb = "ended" if status["reason"] in _DRIVEN_OUT else "rejected"
    why = f"node {pod['spec'].get('nodeName')} {verb} pod {pod['metadata']['name']}: {status['reason']}"
    return Finding(one_line(f"{why}: {status.get('message', '')}"), look)


def _from_events(cluster: Cluster, pod: Object, look: str) -> Finding | None:
    events = [event for event in cluster.events(pod) if event["reason"] in (*_EVENTS, *_PROGRESS)]
    steps = [index for index, event in enumerate(events) if event["reason"] in _PROGRESS]
    failed = events[steps[-1] + 1 :] if steps else events
    name = pod["metadata"]["name"]
    if not failed:
        started = bool(events) and events[-1]["reason"] == _PROGRESS[0]
        return Finding(one_line(f"pod {name} is starting: {events[-1]['message']}")) if started else None
    event = most_specific(failed)
    if hidden_by_notice(event["message"]):
        why = f"pod {name}: {event['reason']}: {cause(event['message'])}: blobfuse2 printed only a version notice"
        node, image = pod["spec"].get("nodeName"), "mcr.microsoft.com/azurelinux/busybox:1.36"
        log = f"kubectl debug node/{node} -it --image={image} -- tail -n 50 /host/var/log/blobfuse2.log"
        return Finding(one_line(f"{why}; the cause is in the node's /var/log/blobfuse2.log"), log)
    return Finding(one_line(f"pod {name}: {event['reason']}: {cause(event['message'])}"), look)
