"""Kinds of programs that run instead of container images, and the interface of a program to its pod."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from k8s.objects import Object
from simulator.kube.client import KubeClient
from simulator.world.hardware import NodeHardware


class PodContext(Protocol):
    """A program's interface to its container on a simulated node."""

    pod: Object
    container: Object
    node: Object

    @property
    def kube(self) -> KubeClient:
        """A client of the API server with the rights of the pod's service account."""

    def env(self) -> Mapping[str, str]:
        """Returns the environment, with resolved references to secrets, config maps and fields."""

    def file(self, path: str) -> bytes | None:
        """Returns the content of a mounted file, or None if the file does not exist."""

    def host_path(self, path: str) -> str:
        """Returns the path on this machine of a mounted file or folder (for host processes)."""

    def kubeconfig(self) -> str:
        """Returns the path of a kubeconfig with the pod's service account (for host processes)."""

    def argv(self) -> list[str]:
        """Returns the container's command and args with references expanded."""

    def local_port(self, container_port: int) -> int:
        """Returns the port on 127.0.0.1 where a host process must serve `container_port`."""

    def cluster_proxy(self) -> str:
        """Returns the URL of a proxy by which host processes reach the addresses of pods and nodes."""

    def pods_on_node(self) -> list[Object]:
        """Returns all pods bound to this pod's node."""

    def log(self, line: str) -> None:
        """Writes a line for `kubectl logs`."""


Gate = Callable[[PodContext], str | None]
"""Returns why the container cannot be ready yet, or None."""


Offers = Callable[[Object, Sequence[Object], NodeHardware, Callable[[Object, str], bytes | None]], dict[str, int]]
"""Returns the extended resources that a node's device plugins offer.

Arguments: the node, its pods, its hardware, and a function that returns the content of a pod's mounted file, or None.
"""


@dataclass(frozen=True)
class Controller:
    """An operator or agent that runs as a thread while its pod is Ready."""

    run: Callable[[PodContext, threading.Event], None]
    """Must return soon after the event is set. An exception is logged to the pod, and `run` is called again."""


@dataclass(frozen=True)
class OneShot:
    """A program that runs once (a chart's hook Job). After an exception, which is logged, the exit code is 1."""

    run: Callable[[PodContext], None]


@dataclass(frozen=True)
class HostProcess:
    """A real executable that runs on the host instead of a container, such as a scheduler."""

    argv: Callable[[PodContext], list[str]]
    """Raises ValueError with the names of unsupported arguments."""
    ports: Callable[[PodContext], Mapping[int, int]] = field(default=lambda _: {})
    """Container port -> port on 127.0.0.1."""
    tools: tuple[str, ...] = ()
    """The required tools. Missing tools are built first."""


@dataclass(frozen=True)
class Holder:
    """A pod, and the indices of the GPUs that it holds."""

    pod: Object
    gpus: tuple[int, ...]


@dataclass(frozen=True)
class Page:
    """An HTTP page of a container in a pod that KWOK runs. Each request generates it from the node's state."""

    port: Callable[[Object], int]
    text: Callable[[NodeHardware, Sequence[Holder]], str]


@dataclass(frozen=True)
class ImageProgram:
    """A program for containers with this image and, if `command` is set, with this word in their command."""

    image: str
    """The last part of the image's repository, without the tag."""
    program: Controller | OneShot | HostProcess | None = None
    """The program. If None, KWOK runs the pod when the gate is open."""
    command: str = ""
    """A text in the container's command or args, such as `nfd-worker`. If empty, all containers match."""
    gate: Gate | None = None
    page: Page | None = None
    leaves: str = ""
    """A file that exists on the node while the pod is Ready."""
