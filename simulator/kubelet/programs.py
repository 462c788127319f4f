"""What the simulator can run for a container image, and what such a program is given.

The kubelet looks a container's image up in these; an image that nobody claims is faked by KWOK.
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
    """One container of one pod on one simulated node, as its program sees it."""

    pod: Object
    container: Object
    node: Object

    @property
    def kube(self) -> KubeClient:
        """Speaks with the pod's own service account: what its RBAC refuses is refused."""

    def env(self) -> Mapping[str, str]:
        """The container's environment, with references to secrets, config maps and fields resolved."""

    def file(self, path: str) -> bytes | None:
        """A file that a config map, secret or projected volume mounts in the container; None where there is none."""

    def host_path(self, path: str) -> str:
        """Where on this machine a mounted file or folder of the container lies (for host processes)."""

    def kubeconfig(self) -> str:
        """Path of a kubeconfig file that speaks with the pod's service account (for host processes)."""

    def argv(self) -> list[str]:
        """The container's command and args, references expanded."""

    def local_port(self, container_port: int) -> int:
        """The port on 127.0.0.1 where a host process is to serve this container port."""

    def cluster_proxy(self) -> str:
        """The URL of a proxy by which a host process reaches pods and nodes at their addresses."""

    def pods_on_node(self) -> list[Object]:
        """All pods bound to this pod's node."""

    def log(self, line: str) -> None:
        """A line for `kubectl logs`."""


Gate = Callable[[PodContext], str | None]
"""Why the container cannot be ready yet, or None when it is (a driver that waits for OFED, say)."""


Offers = Callable[[Object, Sequence[Object], NodeHardware, Callable[[Object, str], bytes | None]], dict[str, int]]
"""What device plugins make a node offer, by extended resource; called with the node, its pods, its hardware, and what
gives a file that a pod mounts (None where there is none)."""


@dataclass(frozen=True)
class Controller:
    """An operator or agent that runs as a thread of the simulator while its pod is Ready."""

    run: Callable[[PodContext, threading.Event], None]
    """Returns soon after the event is set; an exception is logged to the pod and the program is started again."""


@dataclass(frozen=True)
class OneShot:
    """A program that does one thing and ends (a chart's hook Job). An exception is exit code 1, its text the log."""

    run: Callable[[PodContext], None]


@dataclass(frozen=True)
class HostProcess:
    """A real executable run on the host for this container (a scheduler, a controller-manager)."""

    argv: Callable[[PodContext], list[str]]
    """Raises ValueError, naming the argument, for what the executable cannot do."""
    ports: Callable[[PodContext], Mapping[int, int]] = field(default=lambda _: {})
    """Container port -> port on 127.0.0.1 where the process serves it."""
    tools: tuple[str, ...] = ()
    """The tools that it needs: made first, where they are missing."""


@dataclass(frozen=True)
class Holder:
    """A pod of a node, and the indices of the GPUs that it holds."""

    pod: Object
    gpus: tuple[int, ...]


@dataclass(frozen=True)
class Page:
    """What a container that is KWOK's answers over HTTP: asked, it is made of what its node is like then."""

    port: Callable[[Object], int]
    """Of the container."""
    text: Callable[[NodeHardware, Sequence[Holder]], str]


@dataclass(frozen=True)
class ImageProgram:
    """Claims containers by image (the end of its repository, without tag) and, if given, by a word of the command."""

    image: str
    program: Controller | OneShot | HostProcess | None = None
    """None: only the gate matters, KWOK runs the pod."""
    command: str = ""
    """The container's command and args must contain this word, e.g. `nfd-worker`; empty: any."""
    gate: Gate | None = None
    page: Page | None = None
    leaves: str = ""
    """A file on its node, by its path there, for as long as the container's pod is Ready."""
