"""Decides when KWOK may start a pod, and shows in the status of pods which images run no process."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from k8s.objects import Object, has_ended
from simulator.kube.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiError, KubeClient
from simulator.kubelet.context import ContainerContext
from simulator.kubelet.errors import VolumeNotReady
from simulator.kubelet.events import EventRecorder
from simulator.kubelet.nodes import KWOK, RUN_BY, internal_ip
from simulator.kubelet.pods import PodCatalogue
from simulator.kubelet.pulls import ImagePulls, Waiting
from simulator.kubelet.status import PARTLY_STUBBED, STUBBED, ContainerState, now, pod_status
from simulator.sandbox import sandbox
from simulator.sandbox.images import has_recipe

_TEMPORARY_DISK = "/mnt/"
"""The folder where a node's pods create files for each other. A pod waits only for files in this folder."""


class KwokPods:
    """Starts a pod when its images are pulled, its volumes are mounted and its gates (programs.py) are open."""

    def __init__(
        self,
        kube: KubeClient,
        catalogue: PodCatalogue,
        pulls: ImagePulls,
        recorder: EventRecorder,
        context: Callable[[Object, Object, Object], ContainerContext],
    ) -> None:
        """`context` takes a pod, its container and its node."""
        self._kube, self._catalogue, self._pulls, self._recorder = kube, catalogue, pulls, recorder
        self._context = context
        self._shown: dict[str, str | dict[str, Waiting]] = {}

    def advance(self, pod: Object, node: Object) -> None:
        """Assigns the pod to KWOK if it may start. Called until the pod is assigned."""
        over = has_ended(pod) or pod["metadata"].get("deletionTimestamp")  # a rejected pod has ended
        if over or self._may_start(pod, node):
            if not over:
                self.report(pod)
            self._hand_over(pod)

    def report(self, pod: Object) -> None:
        """Shows in the pod's status which images run no process. Ignores DaemonSets, which are simulated elsewhere."""
        owners = [owner["kind"] for owner in pod["metadata"].get("ownerReferences", [])]
        containers = [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
        unknown = [container for container in containers if not self._catalogue.knows(container)]
        if unknown and "DaemonSet" not in owners:
            reason = STUBBED if unknown == containers else PARTLY_STUBBED
            why = dict.fromkeys(_why_not_run(container["image"]) for container in unknown)
            self._show(pod, {"reason": reason, "message": "; ".join(why)})

    def keep(self, uids: Iterable[str]) -> None:
        alive = set(uids)
        self._shown = {uid: shown for uid, shown in self._shown.items() if uid in alive}

    def _may_start(self, pod: Object, node: Object) -> bool:
        uid = pod["metadata"]["uid"]
        what = self._waiting(pod, node) or self._closed_gate(pod, node)
        if what and self._shown.get(uid) != what:  # reports only changes
            status = _gate_status(what) if isinstance(what, str) else self._container_status(pod, what, node)
            self._show(pod, status)
            self._shown[uid] = what
        return not what

    def _closed_gate(self, pod: Object, node: Object) -> str:
        for container in pod["spec"]["containers"]:
            for gate in self._catalogue.gates(container):
                if reason := gate(self._context(pod, container, node)):
                    return reason
        return ""

    def _waiting(self, pod: Object, node: Object) -> dict[str, Waiting]:
        """Returns the containers that wait. If a volume is not ready, all containers wait for it."""
        spec = pod["spec"]
        containers = [*spec.get("initContainers", []), *spec["containers"]]
        try:
            for volume in filter(self._is_waited_for, spec.get("volumes", [])):
                self._context(pod, containers[0], node).volumes.path(volume)
        except VolumeNotReady as error:
            return {container["name"]: Waiting("ContainerCreating", str(error)) for container in containers}
        tries = {container["name"]: self._pulls.waiting(pod, container) for container in containers}
        return {name: waiting for name, waiting in tries.items() if waiting}

    def _is_waited_for(self, volume: Object) -> bool:
        if "hostPath" in volume:  # without sandboxes, no process would create the file
            return self._catalogue.runs_scripts and str(volume["hostPath"]["path"]).startswith(_TEMPORARY_DISK)
        return any(kind in volume for kind in ("persistentVolumeClaim", "ephemeral", "nfs"))

    def _container_status(self, pod: Object, waiting: dict[str, Waiting], node: Object) -> Object:
        spec = pod["spec"]
        states: dict[str, list[ContainerState]] = {}
        for field in ("initContainers", "containers"):
            states[field] = [ContainerState(c["name"], c["image"]) for c in spec.get(field, [])]
            for state in states[field]:
                if found := waiting.get(state.name):
                    state.wait(found.reason, found.message)
                    self._recorder.waiting(pod, state.image, found)
        policy = spec.get("restartPolicy", "Always")
        times = (now(), pod.get("status", {}).get("conditions", []))
        return pod_status(states["initContainers"], states["containers"], policy, "", internal_ip(node), *times)

    def _show(self, pod: Object, status: Object) -> None:
        self._patch(pod, {"status": status}, STRATEGIC_MERGE_PATCH, "status")

    def _hand_over(self, pod: Object) -> None:
        self._patch(pod, {"metadata": {"annotations": {RUN_BY: KWOK}}})

    def _patch(self, pod: Object, body: Object, kind: str = MERGE_PATCH, subresource: str = "") -> None:
        metadata = pod["metadata"]
        body["metadata"] = {"uid": metadata["uid"]} | body.get("metadata", {})
        try:
            self._kube.patch(
                "v1", "Pod", metadata["name"], metadata["namespace"], body, content_type=kind, subresource=subresource
            )
        except ApiError as error:
            if not (error.not_found or error.conflict):
                raise


def _why_not_run(image: str) -> str:
    if has_recipe(image):
        return f"image {image} cannot run on this machine: {sandbox.available()}"
    return f"image {image} has no recipe in simulator/sandbox/recipes/ (docs/simulator.md, The sandbox)"


def _gate_status(reason: str) -> Object:
    return {"conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": reason}]}
