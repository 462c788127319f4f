"""Admission of scheduled pods: a node rejects a pod if the pod's devices are not available.

Source: Kubernetes 1.35.4, pkg/kubelet/cm/admission/errors.go, and rejectPod of pkg/kubelet/kubelet.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from k8s.objects import Object, has_ended
from k8s.resources import device_requests
from simulator.kube.client import ApiError, KubeClient
from simulator.kubelet.devices import Unavailable
from simulator.kubelet.events import EventRecorder
from simulator.kubelet.status import now

REASON = "UnexpectedAdmissionError"


class Admission:
    """Admits or rejects pods. A rejection is final."""

    def __init__(self, kube: KubeClient, allocate: Callable[[Object, Object], object], recorder: EventRecorder) -> None:
        self._kube, self._allocate, self._recorder = kube, allocate, recorder
        self._refused: set[str] = set()

    def admits(self, pod: Object, node: Object) -> bool:
        """Returns False if the pod is rejected. Never rejects pods that have ended or are being deleted."""
        if has_ended(pod) or pod["metadata"].get("deletionTimestamp") or not device_requests(pod):
            return True
        if pod["metadata"]["uid"] in self._refused:
            return False
        try:
            self._allocate(pod, node)
        except Unavailable as error:
            self._refuse(pod, f"Allocate failed due to {error}, which is unexpected")
            return False
        return True

    def keep(self, uids: Iterable[str]) -> None:
        self._refused &= set(uids)

    def _refuse(self, pod: Object, message: str) -> None:
        metadata = pod["metadata"]
        status = {"phase": "Failed", "reason": REASON, "message": f"Pod was rejected: {message}", "startTime": now()}
        body = {"metadata": {"uid": metadata["uid"]}, "status": status}
        try:
            self._kube.patch("v1", "Pod", metadata["name"], metadata["namespace"], body, subresource="status")
        except ApiError as error:
            if not (error.not_found or error.conflict):  # the pod was deleted or replaced
                raise
        self._refused.add(metadata["uid"])
        self._recorder.warn(pod, REASON, message)
