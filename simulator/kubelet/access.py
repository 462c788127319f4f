"""What may be asked of a pod from outside: its logs, commands in its containers, its ports."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simulator.cluster.network import ClusterNetwork
from simulator.kubelet.runner import Runnable, Script
from simulator.kubelet.shim import Shim, ShimError

Object = dict[str, Any]


class PodAccess:
    """Of the pods of one cluster."""

    def __init__(
        self,
        folder: Path,
        network: ClusterNetwork,
        find: Callable[[str, str], Object | None],
        program: Callable[[Object], Runnable],
    ) -> None:
        """`folder` is the cluster's; `find` looks up a pod by namespace and name, `program` what a container runs."""
        self._folder, self._network, self._find, self._program = folder, network, find, program

    def log_file(self, pod: Object, container: str) -> Path:
        """Where a container's log is, or will be."""
        metadata = pod["metadata"]
        folder = f"{metadata['namespace']}_{metadata['name']}_{metadata['uid']}"
        return self._folder / "pod-logs" / folder / f"{container}.log"

    def log(self, namespace: str, name: str, container: str) -> Path | None:
        """A container's log; None where there is none."""
        pod = self._find(namespace, name)
        path = self.log_file(pod, container) if pod else None
        return path if path and path.exists() else None

    def is_running(self, namespace: str, name: str) -> bool:
        """Whether more may come in the logs."""
        return (self._find(namespace, name) or {}).get("status", {}).get("phase") in ("Pending", "Running")

    def shim(self, namespace: str, name: str, container: str) -> Shim:
        """By which commands run in a container. Raises ShimError for one that is not a sandbox."""
        pod = self._find(namespace, name)
        for found in pod["spec"]["containers"] if pod else []:
            if found["name"] == container and isinstance(self._program(found), Script):
                return Shim.of(self._folder / "pods" / str((pod or {})["metadata"]["uid"]), container)
        raise ShimError(f"container {container} of pod {name} has no shell: the simulator does not run its image")

    def connect(self, namespace: str, name: str, port: int) -> socket.socket:
        """A connection to a port of the pod. Raises ShimError."""
        pod = self._find(namespace, name)
        local = self._network.local_port((pod or {}).get("status", {}).get("podIP", ""), port)
        if local is not None:
            return socket.create_connection(("127.0.0.1", local))
        containers = pod["spec"]["containers"] if pod else []
        return self.shim(namespace, name, next((c["name"] for c in containers), "")).connect(port)
