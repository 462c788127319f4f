"""Image pulls: errors of Azure's registries, and the back-off."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from k8s.objects import Object

FIRST_PAUSE_S, LAST_PAUSE_S = 1.0, 5.0
"""The back-off starts at the first value and doubles up to the last. A real kubelet uses 10 s and 5 minutes."""


@dataclass(frozen=True)
class Waiting:
    """A container's waiting state, as in `kubectl get pods`."""

    reason: str
    message: str


@dataclass
class _Tries:
    error: str
    pause: float
    due: float


def repository(image: str) -> str:
    name = image.partition("@")[0]
    head, slash, tail = name.rpartition("/")
    return head + slash + tail.partition(":")[0]


class ImagePulls:
    """Images on each node, and each container's failed pulls. Thread-safe."""

    def __init__(self, refusal: Callable[[str], str | None], clock: Callable[[], float] = time.monotonic) -> None:
        """`refusal` returns why an image cannot be pulled, or None."""
        self._refusal, self._clock = refusal, clock
        self._present: set[tuple[str, str]] = set()
        self._tries: dict[tuple[str, str], _Tries] = {}
        self._lock = threading.Lock()

    def waiting(self, pod: Object, container: Object) -> Waiting | None:
        """Returns why the container waits, or None if the node has the image. Retries after the back-off."""
        image, node = container["image"], pod["spec"]["nodeName"]
        key = (pod["metadata"]["uid"], container["name"])
        with self._lock:
            if container.get("imagePullPolicy") != "Always" and (node, image) in self._present:
                self._tries.pop(key, None)
                return None
            before = self._tries.get(key)
            if before and self._clock() < before.due:
                return Waiting("ImagePullBackOff", f'Back-off pulling image "{image}": ErrImagePull: {before.error}')
            error = self._refusal(image)
            if error is None:
                self._present.add((node, image))
                self._tries.pop(key, None)
                return None
            pause = min(before.pause * 2, LAST_PAUSE_S) if before else FIRST_PAUSE_S
            self._tries[key] = _Tries(error, pause, self._clock() + pause)
            return Waiting("ErrImagePull", error)

    def keep(self, pods: Iterable[str], nodes: Iterable[str]) -> None:
        """Forgets all pods but those with these uids, and all nodes but those with these names."""
        alive, there = set(pods), set(nodes)
        with self._lock:
            self._tries = {key: tries for key, tries in self._tries.items() if key[0] in alive}
            self._present = {(node, image) for node, image in self._present if node in there}
