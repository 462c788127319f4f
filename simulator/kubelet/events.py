"""Events that the kubelet records about pods."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from k8s.objects import Object
from simulator.kube import events
from simulator.kube.client import KubeClient
from simulator.kubelet.pulls import Waiting


class EventRecorder:
    """Records warnings about containers, once per pod and cause. Thread-safe."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube
        self._recorded: set[tuple[str, str, str]] = set()
        self._lock = threading.Lock()

    def waiting(self, pod: Object, image: str, waiting: Waiting) -> None:
        self.warn(pod, *_as_event(image, waiting))

    def warn(self, pod: Object, reason: str, message: str) -> None:
        key = (pod["metadata"]["uid"], reason, message)
        with self._lock:
            if not message or key in self._recorded:
                return
            self._recorded.add(key)
        warn(self._kube, pod, reason, message)

    def keep(self, uids: Iterable[str]) -> None:
        alive = set(uids)
        with self._lock:
            self._recorded = {key for key in self._recorded if key[0] in alive}


def _as_event(image: str, waiting: Waiting) -> tuple[str, str]:
    if waiting.reason == "ErrImagePull":
        return "Failed", f'Failed to pull image "{image}": {waiting.message}'
    if waiting.reason == "ImagePullBackOff":
        return "BackOff", f'Back-off pulling image "{image}"'
    if waiting.reason == "CreateContainerConfigError":
        return "Failed", f"Error: {waiting.message}"
    return "FailedMount", waiting.message


def warn(kube: KubeClient, pod: Object, reason: str, message: str) -> None:
    source = {"component": "kubelet", "host": pod["spec"].get("nodeName", "")}
    events.record(kube, pod, "Warning", reason, message, source)
