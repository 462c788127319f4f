"""How the workloads of a stack fare: tests until they have ended, trainings and services until they run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from simulator.kube.client import ApiError, KubeClient
from simulator.kubelet import placements

Object = dict[str, Any]
_KINDS = {
    "vcjob": ("batch.volcano.sh/v1alpha1", "Job"),
    "job": ("batch/v1", "Job"),
    "deployment": ("apps/v1", "Deployment"),
}
"""As kubectl calls them."""
_VERDICT = "VERDICT:"
_PASSED = f"{_VERDICT} PASS"
_POLL_S = 1.0
_HELD_UP = ("ImagePullBackOff", "CreateContainerConfigError", "CreateContainerError", "InvalidImageName")
_BAD = ("Failed", "Aborted", "Terminated", "Gone")
_DONE = ("Completed", "Complete", "Available")


@dataclass(frozen=True)
class Workload:
    """A workload as the stack's output `workloads` names it, and what the cluster says of it."""

    name: str
    namespace: str
    object_name: str
    command: str
    ends: bool
    """Whether to wait for its end, and not only for its start."""
    phase: str = "Unknown"
    message: str = ""
    kind: str = ""
    """As kubectl calls it; empty where there is no such object."""
    ran_on: tuple[tuple[str, str], ...] = ()
    """Pods and their nodes."""
    verdicts: tuple[str, ...] = ()
    """The lines in which the pods of a test judge."""

    @property
    def failed(self) -> bool:
        return self.phase in _BAD

    @property
    def complaint(self) -> str:
        """What to tell of one that is not as it should be, and what to do."""
        told = f"{self.name} is {self.phase}" + (f": {self.message}" if self.message else "")
        told += f"\n  look at it:   {self.command}"
        if self.failed:
            gone = f"kubectl delete {self.kind} -n {self.namespace} {self.object_name} && " if self.kind else ""
            told += f"\n  run it again: {gone}pulumi up --refresh"
        return told

    @property
    def settled(self) -> bool:
        return self.failed or self.phase in _DONE or (self.phase == "Running" and not self.ends)


def observe(kube: KubeClient, outputs: Mapping[str, Mapping[str, Any]], ran: Path) -> list[Workload]:
    """`outputs` is the stack's `workloads`; `ran` the kubelet's record of placements."""
    found = []
    for name, output in sorted(outputs.items()):
        namespace, object_name = output["namespace"], output["name"]
        kind, workload = _find(kube, namespace, object_name)
        uid = workload["metadata"]["uid"] if workload else ""
        phase, message = _phase(workload) if workload else ("Gone", "there is no such object in the cluster")
        if phase == "Pending":
            message = message or _held_up(kube, namespace, uid)
        ran_on = sorted((p["pod"], p["node"]) for p in placements.load(ran) if p["job_uid"] == uid)
        told = (output["command"], output["ends"], phase, message, kind)
        found.append(Workload(name, namespace, object_name, *told, tuple(ran_on)))
    return found


def judged(kube: KubeClient, workload: Workload) -> Workload:
    """With the verdicts that the logs of its pods end with, the failed ones first; as it is when none has any.

    Raises ApiError for logs that cannot be read.
    """
    found = []
    for pod, _ in workload.ran_on:
        try:
            last = kube.text(f"/api/v1/namespaces/{workload.namespace}/pods/{pod}/log", {"tailLines": 1})
        except ApiError as error:
            if not error.not_found:  # Volcano removes pods of jobs that are over
                raise
            continue
        if last.startswith(_VERDICT):
            found.append(last.strip())
    return replace(workload, verdicts=tuple(sorted(found, key=lambda verdict: verdict.startswith(_PASSED))))


def wait(observed: Callable[[], list[Workload]], timeout_s: float, told: Callable[[str], None]) -> list[Workload]:
    """Until all have settled or time is up; `told` is given a line at each change, and none twice."""
    deadline = time.monotonic() + timeout_s
    said: set[str] = set()
    while True:
        workloads = observed()
        for workload in workloads:
            line = f"{workload.name}: {workload.phase} {workload.message}".rstrip()
            if line not in said:
                said.add(line)
                told(line)
        if all(workload.settled for workload in workloads) or time.monotonic() > deadline:
            return workloads
        time.sleep(_POLL_S)


def _find(kube: KubeClient, namespace: str, name: str) -> tuple[str, Object | None]:
    for called, (api_version, kind) in _KINDS.items():
        if found := kube.find(api_version, kind, name, namespace):
            return called, found
    return "", None


def _held_up(kube: KubeClient, namespace: str, uid: str) -> str:
    """Why containers of its pods do not start, in the kubelet's words; empty where they only wait for their turn."""
    sets = _owned(kube.list("apps/v1", "ReplicaSet", namespace), {uid})  # a Deployment's
    for pod in _owned(kube.list("v1", "Pod", namespace), {uid, *(found["metadata"]["uid"] for found in sets)}):
        status = pod.get("status", {})
        containers = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
        for waiting in (container.get("state", {}).get("waiting") or {} for container in containers):
            if waiting.get("reason") in _HELD_UP:
                return f"{waiting['reason']}: {waiting.get('message', '')}"
    return ""


def _owned(objects: list[Object], owners: set[str]) -> list[Object]:
    """Those that belong to one of the owners, given by their uids."""
    return [obj for obj in objects if any(o["uid"] in owners for o in obj["metadata"].get("ownerReferences", []))]


def _phase(workload: Object) -> tuple[str, str]:
    status = workload.get("status") or {}
    if "state" in status:  # Volcano
        state = status["state"]
        return state.get("phase") or "Pending", state.get("message", "")
    for condition in status.get("conditions") or []:
        if condition["type"] in ("Complete", "Failed", "Available") and condition["status"] == "True":
            return condition["type"], condition.get("message", "")
    return ("Running" if status.get("ready") else "Pending"), ""
