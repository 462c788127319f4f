"""Pods of workloads without a control plane: real manifests, scripts and sandboxes in a fake world."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from config.data import skus
from k8s.objects import Object
from simulator.kubelet.shim_client import Shim
from simulator.sandbox import sandbox
from simulator.sandbox.images import image_name
from simulator.sandbox.spec import Mount, SandboxSpec
from simulator.world import snapshot
from simulator.world.faults import Fault
from simulator.world.hardware import NodeHardware, node_hardware
from tests.support.sizes import H100

NAMESPACE = "ai"
SYSTEM_NODE = "aks-system-11111111-vmss000000"
PLATFORM: dict[str, Any] = {"rdma_resource": "nvidia.com/mlnxnics", "service_account": "mpi-worker-view"}
_TIMEOUT_S = 180


def node_name(index: int) -> str:
    return f"aks-gpu-22222222-vmss{index:06d}"


def node(name: str, sku: str, *, ready: bool = True) -> Object:
    labels = {"node.kubernetes.io/instance-type": sku, "kubernetes.azure.com/agentpool": "gpu"}
    conditions = [{"type": "Ready", "status": "True" if ready else "Unknown"}]
    status = {"capacity": {"cpu": str(skus.sku(sku).vcpus)}, "conditions": conditions}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


def put(folder: Path, files: Mapping[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


@dataclass
class SandboxPod:
    """A pod's first container runs by default. `spec` is its manifest's."""

    name: str
    spec: Object
    node: str = node_name(0)
    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that override the manifest's."""
    labels: Object = field(default_factory=dict)
    held: Mapping[str, int] = field(default_factory=dict)
    """Numbers of allocated GPUs and HCAs."""
    argv: tuple[str, ...] = ()
    """A command that replaces the manifest's."""
    more: Object = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{NAMESPACE}/{self.name}"

    @property
    def allocation(self) -> Object:
        hcas = range(self.held.get("hcas", 0))
        return {"gpus": list(range(self.held.get("gpus", 0))), "hcas": [f"mlx5_{index}" for index in hcas]}


@dataclass
class Sandboxes:
    folder: Path
    nodes: int = 1
    sku: str = H100
    options: Object = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    rdma: bool = True
    meanwhile: Callable[[Any], None] = lambda _: None
    """Is called repeatedly with this object."""
    down: set[str] = field(default_factory=set)
    """Pods on lost nodes."""
    lost_gpus: bool = False
    late_s: float = 0
    """The seconds that an ended pod reports as running, without its last published state."""
    pods: dict[str, SandboxPod] = field(default_factory=dict, init=False)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict, init=False)
    _ended: dict[str, float] = field(default_factory=dict, init=False)
    _shown: object = field(default=None, init=False)

    @property
    def allocated(self) -> dict[str, int]:
        size = skus.sku(self.sku)
        return {"gpus": size.gpus, "hcas": size.infiniband.hcas if size.infiniband and self.rdma else 0}

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def shim(self, name: str) -> Shim:
        return Shim(self.folder / "run" / name)

    @contextmanager
    def running(self, pods: Iterable[SandboxPod], absent: Iterable[str] = ()) -> Iterator[None]:
        self.pods = {pod.name: pod for pod in pods}
        self.processes = {}
        self.write_world()
        try:
            for name in self.pods:
                if name not in absent:
                    self.start(name)
            yield
        finally:
            for process in self.processes.values():
                process.kill()
                process.wait(10)

    def wait(self, *names: str) -> list[tuple[int, str]]:
        """Waits for the end of these or all pods. Returns each one's exit code and log."""
        deadline, waited = time.monotonic() + _TIMEOUT_S, names or tuple(self.processes)
        while any(self.processes[name].poll() is None for name in waited):
            assert time.monotonic() < deadline, "\n".join(f"{name}: {self.log(name)}" for name in self.processes)
            self.write_world()
            self.meanwhile(self)
            time.sleep(0.1)
        self.write_world()
        return [(self.processes[name].returncode, self.log(name)) for name in waited]

    def start(self, name: str, which: int = 0, label: str = "", **changes: Any) -> None:
        """The label, by default the pod's name, names process and log."""
        pod = self.pods[name]
        container = pod.spec["containers"][which]
        given = {entry["name"]: entry.get("value") or pod.node for entry in container.get("env", [])}
        security = container.get("securityContext", {}).get("capabilities", {})
        fields: Object = {
            "pod": pod.key,
            "image": image_name(container["image"]),
            "argv": pod.argv or (*container.get("command", ()), *container.get("args", ())),
            "hostname": pod.spec.get("hostname", pod.name),
            "hardware": self.hardware(pod.node),
            "run_dir": self.folder / "run" / name,
            "world_dir": self.folder / "world",
            "env": {**given, **pod.env},
            "workdir": container.get("workingDir", ""),
            "mounts": pod.mounts,
            "gpus": tuple(pod.allocation["gpus"]),
            "hcas": tuple(pod.allocation["hcas"]),
            "shm_bytes": snapshot.shm_bytes(self._pod(pod)),
            "capabilities": frozenset(security.get("add", [])),
        }
        spec = SandboxSpec(**fields | pod.more | changes)
        spec.run_dir.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{label or name}.log").open("wb") as log:
            self.processes[label or name] = sandbox.start(spec, log.fileno())

    def hardware(self, name: str) -> NodeHardware:
        found = node_hardware(skus.sku("Standard_D4ads_v5" if name == SYSTEM_NODE else self.sku), name, self.faults)
        return replace(
            found, gpus=tuple(replace(gpu, healthy=not self.lost_gpus and gpu.healthy) for gpu in found.gpus)
        )

    def write_world(self) -> None:
        if (world := self.snapshot()) != self._shown:
            self._shown = world
            snapshot.write(world, self.folder / "world")

    def snapshot(self) -> Object:
        pods, lost = list(self.pods.values()), {self.pods[name].node for name in self.down}
        hardware = {name: self.hardware(name) for name in sorted({pod.node for pod in pods})}
        nodes = [node(name, found.sku, ready=name not in lost) for name, found in hardware.items()]
        allocations = {pod.key: pod.allocation for pod in pods}
        states = {pod.key: self.state(pod) for pod in pods}
        return snapshot.snapshot(nodes, [self._pod(pod) for pod in pods], hardware, allocations, states)

    def state(self, pod: SandboxPod) -> Object:
        """Returns what simulated commands in the pod have published."""
        found = snapshot.states_of(self.folder / "run" / pod.name / "pod")
        return {} if self.late_s and found.get("torchrun", {}).get("phase") == "done" else found

    def _pod(self, pod: SandboxPod) -> Object:
        number = list(self.pods).index(pod.name)
        status = {"phase": self.phase(pod.name), "podIP": f"10.244.{number}.4", "conditions": []}
        metadata = {"namespace": NAMESPACE, "name": pod.name, "labels": pod.labels}
        return {"metadata": metadata, "spec": pod.spec | {"nodeName": pod.node}, "status": status}

    def phase(self, name: str) -> str:
        if name not in self.processes:
            return "Pending"
        code, now = self.processes[name].poll(), time.monotonic()
        if code is None:
            self._ended.pop(name, None)
            return "Running"
        late = now - self._ended.setdefault(name, now) < self.late_s
        return "Running" if late else "Failed" if code else "Succeeded"
