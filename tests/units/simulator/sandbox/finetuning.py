"""The fine-tuning without a cluster: its real manifests, pods as KubeRay 1.6.2 makes them, real sandboxes and HTTP."""

from __future__ import annotations

import functools
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from config.facts import skus
from k8s.objects import Object
from simulator.kubelet.shim_client import Shim
from simulator.sandbox import sandbox
from simulator.sandbox.images import image_name
from simulator.sandbox.sandbox import Mount
from simulator.sandbox.uplink import Uplink
from simulator.world import snapshot
from simulator.world.hardware import node_hardware
from tests.support.pools import H100, RDMA, pool
from tests.units.simulator.sandbox.job import NAMESPACE, node, node_name
from workloads._pods import Mount as PodMount
from workloads._team_training import CHECKPOINTS, DATA
from workloads.ray_finetuning import manifests
from workloads.ray_finetuning.options import FinetuningOptions

NAME = "stack-ray-finetuning"
CLUSTER = f"{NAME}-abcde"
HOST = f"{CLUSTER}-head-svc.{NAMESPACE}.svc.cluster.local"
MOST_SECONDS = 120
SHORT = {"model": "facebook/opt-125m", "epochs": 4, "batch": 16, "checkpointSteps": 5}
_START = "ulimit -n 65536; ray start"
_PORTS = "--dashboard-agent-listen-port=52365 --metrics-export-port=8080"
Processes = dict[str, "subprocess.Popen[bytes]"]


@dataclass
class Finetuning:
    """Change what it holds, then `run`, again and again on the same checkpoints."""

    folder: Path
    nodes: int = 1
    sku: str = H100
    options: Object = field(default_factory=dict)
    meanwhile: Callable[[Finetuning, Processes], None] = lambda *_: None
    """Is called every so often."""
    patience_s: int = 60
    """For how long Ray Train waits for GPUs each time."""
    down: set[str] = field(default_factory=set)
    """Pods whose node is lost."""

    def run(self, seconds: float = MOST_SECONDS) -> tuple[int, str]:
        """Exit code and log of the submitter, whose job is run while head and workers live."""
        self._prepare()
        uplink = Uplink(self.folder / "world", lambda _: False, "", pods=self._dial)
        processes: Processes = {}
        try:
            for name in ("head", *(f"worker-{index}" for index in range(self.nodes))):
                processes[name] = self._start(name)
            self._write_world(processes)
            processes["submitter"] = self._start("submitter")
            self._wait(processes, lambda: processes["submitter"].poll() is not None, seconds)
        finally:
            for process in processes.values():
                process.kill()
                process.wait(10)
            uplink.stop()
        return processes["submitter"].returncode, self.log("submitter")

    @property
    def output(self) -> Path:
        """Where it has its checkpoints and metrics, once it has run."""
        return self.folder / self._output.lstrip("/")

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def start(self, name: str, processes: Processes) -> None:
        """Makes a pod, as KubeRay does for one that is gone."""
        processes[name] = self._start(name)

    def shim(self, name: str) -> Shim:
        return Shim(self.folder / f"run-{name}")

    def _prepare(self) -> None:
        given = {**SHORT, "numNodes": self.nodes, "team": NAMESPACE, **self.options}
        run = manifests.Run(
            options=FinetuningOptions.model_validate(given),
            pool=pool(self.sku),
            nodes=self.nodes,
            image="registry.test/ray-finetuning:1",
            rdma_resource=RDMA,
            name=NAME,
            namespace=NAMESPACE,
            checkpoints=PodMount(name="checkpoints", path=CHECKPOINTS, source={}),
            data=PodMount(name="data", path=DATA, source={}) if "dataContainer" in given else None,
        )
        self.spec, self._output = manifests.ray_job(run), run.output
        for folder in ("checkpoints", "data"):
            (self.folder / folder).mkdir(exist_ok=True)

    def _wait(self, processes: Processes, done: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            told = "\n".join(f"{name}: {self.log(name)}" for name in processes)
            assert time.monotonic() < deadline, told
            self._write_world(processes)
            self.meanwhile(self, processes)
            time.sleep(0.1)

    def _command(self, name: str) -> tuple[str, ...]:
        """As KubeRay has it: controllers/ray/common/pod.go and job.go."""
        shell = ("/bin/bash", "-c", "--")
        if name == "head":
            return *shell, f"{_START} --head {_PORTS} --block --dashboard-host=0.0.0.0 --num-cpus=0 --memory=8589934592"
        if name.startswith("worker"):
            return *shell, f"{_START} {_PORTS} --address={HOST}:6379 --block --num-cpus=75 --num-gpus=8"
        address, job = f"--address http://{HOST}:8265", f"{NAME}-fghij"
        submit = f"ray job submit {address} --no-wait --submission-id {job} -- {self.spec['entrypoint']} ;"
        status = f"if ! ray job status {address} {job} >/dev/null 2>&1 ; then"
        # A head takes some seconds until it is ready; KubeRay submits once all are.
        ready = f"until ray health-check --address {HOST}:6379; do sleep 0.2; done;"
        return "/bin/bash", "-ce", "--", f"{ready} {status} {submit} fi ; ray job logs {address} --follow {job}"

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        argv = self._command(name)
        if name.startswith("worker"):
            ready = f"until ray health-check --address {HOST}:6379 > /dev/null 2>&1; do sleep 0.2; done; "
            argv = (*argv[:-1], ready + argv[-1])
        spec = sandbox.SandboxSpec(
            pod=f"{NAMESPACE}/{name}",
            image=image_name("registry.test/ray-finetuning:1"),
            argv=argv,
            hostname=name,
            hardware=node_hardware(skus.sku(self.sku), _node(name), []),
            run_dir=self.folder / f"run-{name}",
            world_dir=self.folder / "world",
            env={
                "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": str(self.patience_s),
                "RAY_DASHBOARD_ADDRESS": f"{HOST}:8265",
                "RAY_JOB_SUBMISSION_ID": f"{NAME}-fghij",
            },
            mounts=(
                Mount(self.folder / "data", DATA),
                Mount(self.folder / "checkpoints", CHECKPOINTS, read_only=False),
            ),
            gpus=tuple(self._allocation(name)["gpus"]),
        )
        with (self.folder / f"{name}.log").open("wb") as log:
            return sandbox.start(spec, log.fileno())

    def _pod(self, name: str, processes: Processes) -> Object:
        ends = {None: "Running", 0: "Succeeded"}
        phase = ends.get(processes[name].poll(), "Failed") if name in processes else "Pending"
        labels = {"ray.io/cluster": CLUSTER, "ray.io/node-type": name.partition("-")[0]} if name != "submitter" else {}
        return {
            "metadata": {"namespace": NAMESPACE, "name": name, "labels": labels},
            "spec": {"containers": [{"name": "ray", "resources": {}}], "nodeName": _node(name)},
            "status": {"phase": phase, "podIP": _address(name), "conditions": []},
        }

    def _allocation(self, name: str) -> Object:
        gpus = self.options.get("gpus", 8) if name.startswith("worker") else 0
        return {"gpus": list(range(gpus)), "hcas": []}

    def _names(self) -> list[str]:
        return ["head", *(f"worker-{index}" for index in range(self.nodes)), "submitter"]

    def _write_world(self, processes: Mapping[str, subprocess.Popen[bytes]]) -> None:
        names = sorted({*self._names(), *processes})
        nodes = [node(_node(name), self.sku) for name in names]
        for name, each in zip(names, nodes, strict=True):
            if name in self.down:
                each["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
        world = snapshot.snapshot(
            nodes,
            [self._pod(name, dict(processes)) for name in names],
            {_node(name): node_hardware(skus.sku(self.sku), _node(name), []) for name in names},
            {f"{NAMESPACE}/{name}": self._allocation(name) for name in names},
            {f"{NAMESPACE}/{name}": snapshot.states_of(self.folder / f"run-{name}" / "pod") for name in names},
        )
        snapshot.write(world, self.folder / "world")

    def _dial(self, address: str, port: int) -> socket.socket | None:
        found = next((name for name in self._names() if _address(name) == address), None)
        return functools.partial(self.shim(found).dial, port)() if found else None


def _node(name: str) -> str:
    """Each pod's own."""
    return node_name({"head": 0, "submitter": 1}.get(name, 2 + int(name[-1]) if name[-1].isdigit() else 0))


def _address(name: str) -> str:
    return f"10.244.{sum(name.encode()) % 250}.4"
