"""One container as a sandbox is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from simulator.world.hardware import NodeHardware
from simulator.world.snapshot import DEFAULT_SHM_BYTES


class SandboxError(RuntimeError):
    """The sandbox cannot be had, or not for this container; the text is for the user."""


@dataclass(frozen=True)
class Mount:
    """A volume: a file or folder of this machine, made for this pod, and where the container sees it."""

    source: Path
    target: str
    read_only: bool = True
    shared: bool = False
    """What is mounted below it inside is mounted on the node (mountPropagation Bidirectional)."""


@dataclass(frozen=True)
class SandboxSpec:
    """One container of one pod."""

    pod: str
    """"namespace/name", its key in world.json."""
    image: str
    """Name of its recipe."""
    argv: tuple[str, ...]
    hostname: str
    hardware: NodeHardware
    run_dir: Path
    """The pod's own folder; `prepare` writes it, and simulated daemons leave their state in its `pod/`."""
    world_dir: Path
    """The folder of world.json."""
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = ""
    mounts: tuple[Mount, ...] = ()
    gpus: tuple[int, ...] = ()
    hcas: tuple[str, ...] = ()
    shm_bytes: int = DEFAULT_SHM_BYTES
    capabilities: frozenset[str] = frozenset()
    privileged: bool = False
    user: int | None = None
    """By number; None: the image's own."""
    group: int = 0
    ip: str = ""
    api_port: int | None = None
    """Of the API server on this machine, for images that call it; the uplink in `world_dir` must let it through."""
    uid: str = ""
    """The pod's own: a pod of the same name may have been there before."""
    neighbours: Mapping[int, str] = field(default_factory=dict)
    """Ports that other containers of the pod say they have, and these by name: a pod has one network. Their run folders
    are beside this one's.
    """
    node_dir: Path | None = None
    """The file system of its node (`machine.py`); one of its own where there is none."""

    @property
    def node(self) -> Path:
        return self.node_dir or self.run_dir / "node"
