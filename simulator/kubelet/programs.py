"""Programs for container images, and their interface to the pod.

KWOK runs pods with unknown images.
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
    """A container on a simulated node, for its program."""

    pod: Object
    container: Object
    node: Object

    @property
    def kube(self) -> KubeClient:
        """A client with the pod's service account and its RBAC."""

    def env(self) -> Mapping[str, str]:
        """Returns the environment, with resolved references to secrets, config maps and fields."""

    def file(self, path: str) -> bytes | None:
        """Returns a file of a mounted config map, secret or projected volume, or None."""

    def host_path(self, path: str) -> str:
        """Returns this machine's path of a mounted file or folder (for host processes)."""

    def kubeconfig(self) -> str:
        """Returns the path of a kubeconfig with the pod's service account (for host processes)."""

    def argv(self) -> list[str]:
        """Returns the container's command and args with references expanded."""

    def local_port(self, container_port: int) -> int:
        """Returns the port on 127.0.0.1 where a host process must serve this port."""

    def cluster_proxy(self) -> str:
        """Returns the URL of a proxy to pods and nodes at their addresses, for host processes."""

    def pods_on_node(self) -> list[Object]:
        """Returns all pods bound to this pod's node."""

    def log(self, line: str) -> None:
        """Writes a line for `kubectl logs`."""


Gate = Callable[[PodContext], str | None]
"""Returns why the container cannot be ready yet (for example a driver that waits for OFED), or None."""


Offers = Callable[[Object, Sequence[Object], NodeHardware, Callable[[Object, str], bytes | None]], dict[str, int]]
"""Returns a node's extended resources from device plugins.

Arguments: the node, its pods, its hardware, and a function for a pod's mounted file (None if missing).
"""


@dataclass(frozen=True)
class Controller:
    """An operator or agent that runs as a thread while its pod is Ready."""

    run: Callable[[PodContext, threading.Event], None]
    """Returns soon after the event is set. An exception is logged to the pod, and restarts the program."""


@dataclass(frozen=True)
class OneShot:
    """A program that runs once (a chart's hook Job). An exception is exit code 1, and its text the log."""

    run: Callable[[PodContext], None]


@dataclass(frozen=True)
class HostProcess:
    """A real executable on the host for this container (a scheduler, a controller-manager)."""

    argv: Callable[[PodContext], list[str]]
    """Raises ValueError, naming the argument, for unsupported ones."""
    ports: Callable[[PodContext], Mapping[int, int]] = field(default=lambda _: {})
    """Container port -> port on 127.0.0.1."""
    tools: tuple[str, ...] = ()
    """Required tools. Missing ones are built."""


@dataclass(frozen=True)
class Holder:
    """A pod of a node, and the indices of its GPUs."""

    pod: Object
    gpus: tuple[int, ...]


@dataclass(frozen=True)
class Page:
    """An HTTP page of a container of KWOK, generated at each request from the node's state."""

    port: Callable[[Object], int]
    text: Callable[[NodeHardware, Sequence[Holder]], str]


@dataclass(frozen=True)
class ImageProgram:
    """A program for containers with this image (the end of its repository, without tag), and command if given."""

    image: str
    program: Controller | OneShot | HostProcess | None = None
    """None if KWOK runs the pod, after the gate."""
    command: str = ""
    """A word in the container's command and args, such as `nfd-worker`. Empty matches any."""
    gate: Gate | None = None
    page: Page | None = None
    leaves: str = ""
    """A file on the node while the container's pod is Ready."""
