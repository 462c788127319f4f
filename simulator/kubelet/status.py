"""Status of pods that the simulator runs itself. Pure functions."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from k8s.objects import Object

STUBBED, PARTLY_STUBBED = "Stubbed", "PartlyStubbed"
"""Status reasons of pods in which all or some containers run no process."""


def now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class ContainerState:
    """A container's state. `exit_code` is None while the container waits or runs."""

    name: str
    image: str
    state: str = "waiting"
    reason: str = "ContainerCreating"
    message: str = ""
    ready: bool = False
    restarts: int = 0
    exit_code: int | None = None
    started_at: str = ""
    finished_at: str = ""
    last: Object = field(default_factory=dict)

    def run(self) -> None:
        if self.started_at:
            self._remember()
            self.restarts += 1
        self.state, self.reason, self.exit_code, self.started_at = "running", "", None, now()

    def end(self, code: int, message: str = "") -> None:
        self.state, self.exit_code, self.ready, self.finished_at = "terminated", code, False, now()
        self.started_at = self.started_at or self.finished_at  # a stub does not start
        self.reason, self.message = "Completed" if code == 0 else "Error", message

    def wait(self, reason: str, message: str = "") -> None:
        self._remember()
        self.state, self.reason, self.message = "waiting", reason, message

    def _remember(self) -> None:
        if self.state == "terminated":
            self.last = {"terminated": self._terminated()}

    def _terminated(self) -> Object:
        return {
            "exitCode": self.exit_code,
            "reason": self.reason,
            "startedAt": self.started_at,
            "finishedAt": self.finished_at,
            **({"message": self.message} if self.message else {}),
        }

    def to_status(self) -> Object:
        states: dict[str, Object] = {
            "waiting": {"reason": self.reason, "message": self.message},
            "running": {"startedAt": self.started_at},
            "terminated": self._terminated() if self.state == "terminated" else {},
        }
        return {
            "name": self.name,
            "image": self.image,
            "imageID": self.image,
            "ready": self.ready,
            "started": self.state == "running",
            "restartCount": self.restarts,
            "state": {self.state: states[self.state]},
            "lastState": self.last,
        }


def phase(init: list[ContainerState], main: list[ContainerState], restart_policy: str) -> str:
    if any(state.exit_code not in (None, 0) for state in init) and restart_policy == "Never":
        return "Failed"
    if not any(state.started_at for state in main):
        return "Pending"
    ended = [state for state in main if state.state == "terminated"]
    if len(ended) < len(main) or restart_policy == "Always":
        return "Running"
    failed = any(state.exit_code for state in ended)
    if failed and restart_policy == "OnFailure":
        return "Running"
    return "Failed" if failed else "Succeeded"


def pod_status(
    init: list[ContainerState],
    main: list[ContainerState],
    restart_policy: str,
    pod_ip: str,
    host_ip: str,
    started: str,
    before: list[Object],
) -> Object:
    """Returns the pod's status. Unchanged conditions keep their times from `before`, the earlier conditions."""
    reached = phase(init, main, restart_policy)
    ready = all(state.ready for state in main)
    initialized = all(state.exit_code == 0 for state in init)
    conditions = {"Initialized": initialized, "Ready": ready, "ContainersReady": ready, "PodScheduled": True}
    status: Object = {
        "phase": reached,
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "startTime": started,
        "conditions": [_condition(name, str(value), before) for name, value in conditions.items()],
        "containerStatuses": [state.to_status() for state in main],
    }
    if init:
        status["initContainerStatuses"] = [state.to_status() for state in init]
    if pod_ip:
        status |= {"podIP": pod_ip, "podIPs": [{"ip": pod_ip}]}
    return status


def lost_with_node(pod: Object) -> Object:
    """Returns the pod GC's patch (markFailedAndDeletePodWithCondition) for a pod of a deleted node."""
    why = {"reason": "DeletionByPodGC", "message": "PodGC: node no longer exists", "lastTransitionTime": now()}
    status = {"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True", **why}]}
    return {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}


def ended_by_reboot(pod: Object) -> Object:
    """Returns a kubelet's patch for a pod that cannot restart after its node's reboot.

    Source: convertStatusToAPIStatus and convertToAPIContainerStatuses in pkg/kubelet/kubelet_pods.go of Kubernetes
    1.35.4.
    """
    why = {"reason": "ContainerStatusUnknown", "exitCode": 137}
    why["message"] = "The container could not be located when the pod was terminated"
    gone = {"ready": False, "started": False, "state": {"terminated": why | {"finishedAt": now()}}}
    found = pod.get("status", {}).get("containerStatuses", [])
    ended = [each if "terminated" in each.get("state", {}) else each | gone for each in found]
    return {
        "metadata": {"uid": pod["metadata"]["uid"]},
        "status": {"phase": "Failed", "containerStatuses": ended},
    }


def _condition(name: str, value: str, before: list[Object]) -> Object:
    since = [old["lastTransitionTime"] for old in before if (old["type"], old["status"]) == (name, value)]
    return {"type": name, "status": value, "lastTransitionTime": since[0] if since else now()}
