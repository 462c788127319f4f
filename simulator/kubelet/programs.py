"""Programs that the simulator runs for container images, and their interface to the pod.

The kubelet looks up a container's image here. KWOK runs pods with unknown images.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from k8s.objects import Object
from simulator.kube.client import KubeClient
from simulator.world.hardware import NodeHardware


class PodContext(Protocol):
    """One container of one pod on one simulated node, for its program."""

    pod: Object
    container: Object
    node: Object

    @property
    def kube(self) -> KubeClient:
        """A client with the pod's service account and its RBAC permissions."""

    def env(self) -> Mapping[str, str]:
        """Returns the container's environment, with references to secrets, config maps and fields resolved."""

    def file(self, path: str) -> bytes | None:
        """Returns a file of a mounted config map, secret or projected volume, or None if it does not exist."""

    def host_path(self, path: str) -> str:
        """Returns the path on this machine of a file or folder mounted in the container (for host processes)."""

    def kubeconfig(self) -> str:
        """Returns the path of a kubeconfig file with the pod's service account (for host processes)."""

    def argv(self) -> list[str]:
        """Returns the container's command and args with references expanded."""

    def local_port(self, container_port: int) -> int:
        """Returns the port on 127.0.0.1 where a host process must serve this container port."""

    def cluster_proxy(self) -> str:
        """Returns the URL of a proxy that connects host processes to pods and nodes at their addresses."""

    def pods_on_node(self) -> list[Object]:
        """Returns all pods bound to this pod's node."""

    def log(self, line: str) -> None:
        """Writes a line for `kubectl logs`."""


Gate = Callable[[PodContext], str | None]
"""A function that returns why the container cannot be ready yet (for example a driver that waits for OFED), or None."""


Offers = Callable[[Object, Sequence[Object], NodeHardware, Callable[[Object, str], bytes | None]], dict[str, int]]
"""A function that returns a node's extended resources from device plugins.

Its arguments are the node, its pods, its hardware, and a function for a pod's mounted file (None if missing).
"""


@dataclass(frozen=True)
class Controller:
    """An operator or agent that runs as a thread of the simulator while its pod is Ready."""

    run: Callable[[PodContext, threading.Event], None]
    """Returns soon after the event is set. An exception is logged to the pod, and the program restarts."""


@dataclass(frozen=True)
class OneShot:
    """A program that runs once (a chart's hook Job). An exception is exit code 1, and its text the log."""

    run: Callable[[PodContext], None]


@dataclass(frozen=True)
class HostProcess:
    """A real executable run on the host for this container (a scheduler, a controller-manager)."""

    argv: Callable[[PodContext], list[str]]
    """Raises ValueError, naming the argument, for unsupported arguments."""
    ports: Callable[[PodContext], Mapping[int, int]] = field(default=lambda _: {})
    """Container port -> port on 127.0.0.1 where the process serves it."""
    tools: tuple[str, ...] = ()
    """Required tools. Missing ones are built first."""


@dataclass(frozen=True)
class Holder:
    """A pod of a node, and the indices of its GPUs."""

    pod: Object
    gpus: tuple[int, ...]


@dataclass(frozen=True)
class Page:
    """An HTTP page of a container that KWOK runs, generated at each request from the node's current state."""

    port: Callable[[Object], int]
    text: Callable[[NodeHardware, Sequence[Holder]], str]


@dataclass(frozen=True)
class ImageProgram:
    """A program for containers with this image (the end of its repository, without tag), and command if given."""

    image: str
    program: Controller | OneShot | HostProcess | None = None
    """None if only the gate matters and KWOK runs the pod."""
    command: str = ""
    """A word that the container's command and args must contain, such as `nfd-worker`. Empty matches any."""
    gate: Gate | None = None
    page: Page | None = None
    leaves: str = ""
    """The path of a file on the node that exists while the container's pod is Ready."""
