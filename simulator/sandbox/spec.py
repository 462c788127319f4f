"""The specification of a sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from simulator.world.hardware import NodeHardware
from simulator.world.snapshot import DEFAULT_SHM_BYTES


class SandboxError(RuntimeError):
    """This machine cannot run sandboxes, or cannot run this container. The message is for the user."""


@dataclass(frozen=True)
class Mount:
    """A volume: a file or folder of this machine, and its path in the container."""

    source: Path
    target: str
    read_only: bool = True
    shared: bool = False
    """Whether the node sees mounts below the volume (mountPropagation Bidirectional)."""


@dataclass(frozen=True)
class SandboxSpec:
    """One container of one pod."""

    pod: str
    """The pod's key in world.json, "namespace/name"."""
    image: str
    """The recipe's name."""
    argv: tuple[str, ...]
    hostname: str
    hardware: NodeHardware
    run_dir: Path
    """The container's folder, which `prepare` writes. Simulated commands publish documents in its folder `pod/`."""
    world_dir: Path
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = ""
    mounts: tuple[Mount, ...] = ()
    gpus: tuple[int, ...] = ()
    hcas: tuple[str, ...] = ()
    shm_bytes: int = DEFAULT_SHM_BYTES
    capabilities: frozenset[str] = frozenset()
    privileged: bool = False
    user: int | None = None
    """The user id, or None for the image's."""
    group: int = 0
    ip: str = ""
    api_port: int | None = None
    """The API server's port on this machine, for images that call it. The uplink in `world_dir` must allow the port."""
    uid: str = ""
    """The pod's uid, which distinguishes the pod from an earlier pod with the same name."""
    neighbours: Mapping[int, str] = field(default_factory=dict)
    """Names of the pod's other containers by declared port. Their folders are next to `run_dir`."""
    node_dir: Path | None = None
    """The node's file system (`machine.py`). If None, `run_dir` has a file system for this container only."""

    @property
    def node(self) -> Path:
        return self.node_dir or self.run_dir / "node"
