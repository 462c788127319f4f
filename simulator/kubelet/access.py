"""Access to a pod through the API server: logs, commands, and ports."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

from k8s.objects import Object
from simulator.host.network import ClusterNetwork
from simulator.kubelet import folders
from simulator.kubelet.logs import logs_in
from simulator.kubelet.runner import Runnable, Script
from simulator.kubelet.shim_client import Shim, ShimError

_OK, _BAD_REQUEST = 200, 400
_NOT_PULLED = {"ErrImagePull": "image can't be pulled", "ImagePullBackOff": "trying and failing to pull image"}


class PodAccess:
    def __init__(
        self,
        folder: Path,
        network: ClusterNetwork,
        find: Callable[[str, str], Object | None],
        program: Callable[[Object], Runnable],
    ) -> None:
        self._folder, self._network, self._find, self._program = folder, network, find, program

    def log(self, namespace: str, name: str, container: str, *, previous: bool = False) -> Path | None:
        """Returns the log of a container's last start, or with `previous` of the start before. None if it is missing.

        While the container waits for a restart, both are the last log, as in kubelets.
        """
        pod = self._find(namespace, name)
        logs = logs_in(folders.logs_of(self._folder, pod) / container) if pod else []
        if previous and not _is_between_starts(pod or {}, container):
            logs = logs[:-1]
        return logs[-1] if logs else None

    def why_no_log(self, namespace: str, name: str, container: str) -> tuple[int, str]:
        """Returns the HTTP status and message for a missing log.

        Source for waiting containers: validateContainerLogStatus in pkg/kubelet/kubelet_pods.go.
        """
        pod = self._find(namespace, name)
        if pod is None:
            return _BAD_REQUEST, f'pod "{name}" cannot be found - no logs available'
        containers = [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
        running = [found["name"] for found in containers if self._program(found) is not None]
        if container not in running:
            how = "it is stubbed" if running else "KWOK stubs its pod"
            return _OK, f"The simulator runs no process for container {container}; {how}.\n"
        state = _status(pod, container).get("state", {})
        if "running" in state or "terminated" in state:
            return _OK, ""
        reason = state.get("waiting", {}).get("reason", "ContainerCreating")
        why = _NOT_PULLED.get(reason, reason)
        return _BAD_REQUEST, f'container "{container}" in pod "{name}" is waiting to start: {why}'

    def can_grow(self, namespace: str, name: str, container: str, log: Path) -> bool:
        pod = self._find(namespace, name) or {}
        ended = "terminated" in _status(pod, container).get("state", {}) or _is_between_starts(pod, container)
        may_run = pod.get("status", {}).get("phase") in ("Pending", "Running") and not ended
        return may_run and self.log(namespace, name, container) == log

    def shim(self, namespace: str, name: str, container: str) -> Shim:
        """Returns the shim that runs commands in the container. Raises ShimError if the container has no sandbox."""
        pod = self._find(namespace, name)
        for found in pod["spec"]["containers"] if pod else []:
            if pod and found["name"] == container and isinstance(self._program(found), Script):
                return Shim.of(folders.of_pod(self._folder, pod), container)
        raise ShimError(f"container {container} of pod {name} has no shell: the simulator does not run its image")

    def connect(self, namespace: str, name: str, port: int) -> socket.socket:
        """Connects to a port of the pod. Raises ShimError."""
        pod = self._find(namespace, name)
        local = self._network.local_port((pod or {}).get("status", {}).get("podIP", ""), port)
        if local is not None:
            return socket.create_connection(("127.0.0.1", local))
        containers = pod["spec"]["containers"] if pod else []
        return self.shim(namespace, name, next((c["name"] for c in containers), "")).connect(port)


def _status(pod: Object, container: str) -> Object:
    status = pod.get("status", {})
    statuses = (*status.get("containerStatuses", []), *status.get("initContainerStatuses", []))
    return next((found for found in statuses if found["name"] == container), {})


def _is_between_starts(pod: Object, container: str) -> bool:
    status = _status(pod, container)
    return "waiting" in status.get("state", {}) and bool(status.get("lastState"))
