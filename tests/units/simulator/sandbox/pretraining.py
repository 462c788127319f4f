"""The pre-training without a cluster: its real manifests and script, hand-made pods and world, real sandboxes."""

from __future__ import annotations

import copy
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from config.facts import skus
from k8s.objects import Object
from simulator.kubelet.shim_client import Shim
from simulator.sandbox import sandbox
from simulator.sandbox.images import image_name
from simulator.sandbox.sandbox import Mount
from simulator.world import snapshot
from simulator.world.hardware import node_hardware
from tests.support.pools import H100, RDMA, pool
from tests.units.simulator.sandbox.job import NAMESPACE, node, node_name
from workloads._pods import Mount as PodMount
from workloads._team_training import CHECKPOINTS, DATA
from workloads.pytorch_pretraining import manifests
from workloads.pytorch_pretraining.options import PretrainingOptions

NAME = "stack-pytorch-pretraining"
MOST_SECONDS = 120
STEPS = {"modelSize": "125m", "steps": 30, "checkpointSteps": 10}
Processes = dict[int, "subprocess.Popen[bytes]"]


@dataclass
class Pretraining:
    """Change what it holds, then `run`, again and again on the same checkpoints."""

    folder: Path
    nodes: int = 1
    sku: str = H100
    options: Object = field(default_factory=dict)
    meanwhile: Callable[[Pretraining, Processes], None] = lambda *_: None
    """Is called every so often."""
    _ended: dict[int, float] = field(default_factory=dict)
    data: bool = False
    late_s: float = 0
    """How long after its end a pod still says that it runs, with nothing of what its process has published last."""

    def run(self) -> list[tuple[int, str]]:
        """Exit code and log of each node, by rank."""
        given = {**STEPS, "numNodes": self.nodes, "team": NAMESPACE, **self.options}
        self.options_read = PretrainingOptions.model_validate(given)
        run = manifests.Run(
            options=self.options_read,
            pool=pool(self.sku),
            nodes=self.nodes,
            image="registry.test/pytorch-pretraining:1",
            rdma_resource=RDMA,
            name=NAME,
            namespace=NAMESPACE,
            checkpoints=PodMount(name="checkpoints", path=CHECKPOINTS, source={}),
            data=PodMount(name="data", path=DATA, source={}) if "dataContainer" in given else None,
        )
        self.template: Object = copy.deepcopy(manifests.template(run, "Never"))
        for folder in ("checkpoints", "data", "files"):
            (self.folder / folder).mkdir(exist_ok=True)
        for name, text in manifests.files(run).contents.items():
            (self.folder / "files" / name).write_text(text)
        self._write_world({})
        processes = {rank: self._start(rank) for rank in range(self.nodes)}
        deadline = time.monotonic() + MOST_SECONDS
        try:
            while any(process.poll() is None for process in processes.values()):
                assert time.monotonic() < deadline, self.log(0)
                self._write_world(processes)
                self.meanwhile(self, processes)
                time.sleep(0.1)
        finally:
            for process in processes.values():
                process.kill()
                process.wait(10)
        return [(processes[rank].returncode, self.log(rank)) for rank in processes]

    @property
    def output(self) -> Path:
        """Where it has its checkpoints and metrics."""
        return self.folder / "checkpoints" / NAMESPACE / NAME

    def log(self, rank: int) -> str:
        return (self.folder / f"rank-{rank}.log").read_text()

    def terminate(self, rank: int) -> None:
        """As a kubelet does first."""
        Shim(self.folder / f"run-{rank}").signal(signal.SIGTERM)

    def _start(self, rank: int) -> subprocess.Popen[bytes]:
        container = self.template["spec"]["containers"][0]
        given = {entry["name"]: entry["value"] for entry in container["env"]}
        operators = {"RANK": str(rank), "MASTER_ADDR": _pod_name(0), "MASTER_PORT": "23456"}
        spec = sandbox.SandboxSpec(
            pod=f"{NAMESPACE}/{_pod_name(rank)}",
            image=image_name(container["image"]),
            argv=(*container["command"], *container["args"]),
            hostname=_pod_name(rank),
            hardware=node_hardware(skus.sku(self.sku), node_name(rank), []),
            run_dir=self.folder / f"run-{rank}",
            world_dir=self.folder / "world",
            env={**given, **operators},
            mounts=(
                Mount(self.folder / "files", "/opt/pytorch-pretraining"),
                Mount(self.folder / "data", DATA),
                Mount(self.folder / "checkpoints", CHECKPOINTS, read_only=False),
            ),
            gpus=tuple(self._allocation()["gpus"]),
            hcas=tuple(self._allocation()["hcas"]),
            shm_bytes=snapshot.shm_bytes(self._pod(rank, {})),
            capabilities=frozenset(container.get("securityContext", {}).get("capabilities", {}).get("add", [])),
        )
        with (self.folder / f"rank-{rank}.log").open("wb") as log:
            return sandbox.start(spec, log.fileno())

    def _pod(self, rank: int, processes: Processes) -> Object:
        ends = {None: "Running", 0: "Succeeded"}
        phase = ends.get(self._code(rank, processes), "Failed") if rank in processes else "Pending"
        labels = {"training.kubeflow.org/replica-type": "worker" if rank else "master"}
        return {
            "metadata": {"namespace": NAMESPACE, "name": _pod_name(rank), "labels": labels},
            "spec": self.template["spec"] | {"nodeName": node_name(rank)},
            "status": {"phase": phase, "podIP": f"10.244.{rank}.4", "conditions": []},
        }

    def _code(self, rank: int, processes: Processes) -> int | None:
        """Its exit code, as soon as it is told."""
        code, now = processes[rank].poll(), time.monotonic()
        if code is None:
            self._ended.pop(rank, None)
            return None
        return code if now - self._ended.setdefault(rank, now) >= self.late_s else None

    def _states(self, rank: int) -> Object:
        found = snapshot.states_of(self.folder / f"run-{rank}" / "pod")
        return {} if self.late_s and found.get("torchrun", {}).get("phase") == "done" else found

    def _allocation(self) -> Object:
        """What the container asks for."""
        asked = self.template["spec"]["containers"][0]["resources"]["limits"]
        hcas = range(int(asked.get(RDMA, 0)))
        return {"gpus": list(range(int(asked["nvidia.com/gpu"]))), "hcas": [f"mlx5_{index}" for index in hcas]}

    def _write_world(self, processes: Processes) -> None:
        ranks = range(self.nodes)
        keys = {f"{NAMESPACE}/{_pod_name(rank)}": rank for rank in ranks}
        world = snapshot.snapshot(
            [node(node_name(rank), self.sku) for rank in ranks],
            [self._pod(rank, processes) for rank in ranks],
            {node_name(rank): node_hardware(skus.sku(self.sku), node_name(rank), []) for rank in ranks},
            dict.fromkeys(keys, self._allocation()),
            {key: self._states(rank) for key, rank in keys.items()},
        )
        snapshot.write(world, self.folder / "world")


def _pod_name(rank: int) -> str:
    """As the training operator names them."""
    return f"{NAME}-worker-{rank - 1}" if rank else f"{NAME}-master-0"
