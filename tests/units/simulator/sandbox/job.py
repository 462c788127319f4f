"""MPI jobs without a cluster: their real manifests and scripts, hand-made pods and world, real sandboxes."""

from __future__ import annotations

import copy
import functools
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from components.context import GpuPool
from config.facts import skus
from k8s.objects import Object
from simulator.sandbox import sandbox
from simulator.sandbox.images import image_name
from simulator.world import snapshot
from simulator.world.faults import Fault
from simulator.world.hardware import NodeHardware, node_hardware
from tests.support import pools
from workloads._mpi import MpiJob
from workloads.metaseq import manifests as metaseq
from workloads.metaseq.options import MetaseqOptions
from workloads.nccl_allreduce import manifests as nccl
from workloads.nccl_allreduce.options import NcclAllreduceOptions

NAMESPACE = "ai"
SYSTEM_NODE = "aks-system-11111111-vmss000000"
_TIMEOUT_S = 180
PLATFORM: dict[str, Any] = {"rdma_resource": "nvidia.com/mlnxnics", "service_account": "mpi-worker-view"}


def node_name(index: int) -> str:
    return f"aks-gpu-22222222-vmss{index:06d}"


@functools.cache
def key_pair() -> tuple[str, str]:
    """A private key as Volcano's ssh plugin makes it (PKCS#1), and its authorized_keys line."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private.decode(), public.decode()


@dataclass
class Job(ABC):
    """A job of some workload: change what it holds, then `run`."""

    folder: Path
    nodes: int = 2
    sku: str = pools.H100
    faults: list[Fault] = field(default_factory=list)
    options: Object = field(default_factory=dict)
    rdma: bool = True
    absent_workers: set[int] = field(default_factory=set)
    gpus_allocated: int | None = None
    _shown: object = field(default=None, init=False)
    """What the world was last written of."""

    def __post_init__(self) -> None:
        job = self.job(pools.pool(self.sku))
        tasks = {task["name"]: task for task in job.spec()["tasks"]}
        self.name, self.mounted_at = job.files.config_map, job.files.folder
        self.files = dict(job.files.contents)
        self.master: Object = copy.deepcopy(tasks["mpimaster"]["template"])
        self.worker: Object = copy.deepcopy(tasks["mpiworker"]["template"])

    @abstractmethod
    def job(self, pool: GpuPool) -> MpiJob:
        """What the workload makes of its options on this pool."""

    def set_env(self, name: str, value: str) -> None:
        """In the master's manifest; the ranks get it from there."""
        env = self.master["spec"]["containers"][0]["env"]
        env[:] = [entry for entry in env if entry["name"] != name] + [{"name": name, "value": value}]

    def run(self, then: Callable[[], None] = lambda: None) -> tuple[int, str]:
        """Exit code and log of the master. `then` is called once that has ended, while the workers are still there."""
        self._write_volumes()
        log, deadline = self.folder / "mpimaster-0.log", time.monotonic() + _TIMEOUT_S
        with self._containers() as (master, running):
            while master.poll() is None:
                assert time.monotonic() < deadline, f"it did not end within {_TIMEOUT_S} s:\n{log.read_text()}"
                self._write_world(running)
                time.sleep(0.1)
            self._write_world(running)
            then()
        return master.returncode, log.read_text()

    @contextmanager
    def _containers(self) -> Iterator[tuple[subprocess.Popen[bytes], list[str]]]:
        workers = [f"mpiworker-{index}" for index in range(self.nodes) if index not in self.absent_workers]
        self._write_world([])
        processes = {task: self._start(task) for task in [*workers, "mpimaster-0"]}
        try:
            yield processes["mpimaster-0"], list(processes)
        finally:
            for process in processes.values():
                process.kill()
                process.wait(10)

    def _start(self, task: str) -> subprocess.Popen[bytes]:
        pod = self._pod(task, [])
        container = pod["spec"]["containers"][0]
        capabilities = container.get("securityContext", {}).get("capabilities", {}).get("add", [])
        allocation = self._allocation(task)
        spec = sandbox.SandboxSpec(
            pod=snapshot.pod_key(pod),
            image=image_name(container["image"]),
            argv=tuple(container["command"]),
            hostname=pod["spec"]["hostname"],
            hardware=self._hardware(pod["spec"]["nodeName"]),
            run_dir=self.folder / task,
            world_dir=self.folder / "world",
            env={entry["name"]: entry.get("value") or pod["spec"]["nodeName"] for entry in container.get("env", [])},
            mounts=(
                sandbox.Mount(self.folder / "files", self.mounted_at),
                sandbox.Mount(self.folder / "ssh", "/root/.ssh"),
                sandbox.Mount(self.folder / "svc", "/etc/volcano"),
            ),
            gpus=tuple(allocation["gpus"]),
            hcas=tuple(allocation["hcas"]),
            shm_bytes=snapshot.shm_bytes(pod),
            capabilities=frozenset(capabilities),
        )
        with (self.folder / f"{task}.log").open("wb") as log:
            return sandbox.start(spec, log.fileno())

    def _pod(self, task: str, running: Iterable[str]) -> Object:
        master = task == "mpimaster-0"
        number = int(task.rpartition("-")[2])
        name = f"{self.name}-{task}"
        spec = (self.master if master else self.worker)["spec"]
        placed = {"nodeName": SYSTEM_NODE if master else node_name(number), "hostname": name, "subdomain": self.name}
        phase = "Running" if task in running else "Pending"
        return {
            "metadata": {"namespace": NAMESPACE, "name": name},
            "spec": spec | placed,
            "status": {"phase": phase, "podIP": f"10.244.{number}.{4 + master}", "conditions": []},
        }

    def _allocation(self, task: str) -> Object:
        size = skus.sku(self.sku)
        if task == "mpimaster-0":
            return {"gpus": [], "hcas": []}
        gpus = size.gpus if self.gpus_allocated is None else self.gpus_allocated
        hcas = size.infiniband.hcas if size.infiniband and self.rdma else 0
        return {"gpus": list(range(gpus)), "hcas": [f"mlx5_{index}" for index in range(hcas)]}

    def _hardware(self, node: str) -> NodeHardware:
        return node_hardware(skus.sku("Standard_D4ads_v5" if node == SYSTEM_NODE else self.sku), node, self.faults)

    def _write_world(self, running: Iterable[str]) -> None:
        names = [SYSTEM_NODE, *(node_name(index) for index in range(self.nodes))]
        tasks = ["mpimaster-0", *(f"mpiworker-{index}" for index in range(self.nodes))]
        pods = {f"{NAMESPACE}/{self.name}-{task}": task for task in tasks}
        states = {key: snapshot.states_of(self.folder / task / "pod") for key, task in pods.items()}
        if (now := (list(running), list(self.faults), states)) == self._shown:
            return
        self._shown = now
        world = snapshot.snapshot(
            [node(name, self._hardware(name).sku) for name in names],
            [self._pod(task, running) for task in tasks],
            {name: self._hardware(name) for name in names},
            {key: self._allocation(task) for key, task in pods.items()},
            states,
        )
        snapshot.write(world, self.folder / "world")

    def _write_volumes(self) -> None:
        private, public = key_pair()
        ssh = {"id_rsa": private, "id_rsa.pub": public, "authorized_keys": public}
        ssh["config"] = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
        hosts = "".join(f"{self.name}-mpiworker-{index}.{self.name}\n" for index in range(self.nodes))
        for folder, files in {"files": self.files, "ssh": ssh, "svc": {"mpiworker.host": hosts}}.items():
            (self.folder / folder).mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (self.folder / folder / name).write_text(text)
                (self.folder / folder / name).chmod(0o600 if folder == "ssh" else 0o644)


class NcclJob(Job):
    """The NCCL all-reduce."""

    def job(self, pool: GpuPool) -> MpiJob:
        options = NcclAllreduceOptions.model_validate({"sshTimeoutSeconds": 10, **self.options})
        image = "registry.test/nccl-test:1"
        return nccl.job(nccl.Run(options=options, pool=pool, nodes=self.nodes, image=image, **PLATFORM))


class MetaseqJob(Job):
    """The Metaseq training, of few updates."""

    def job(self, pool: GpuPool) -> MpiJob:
        options = MetaseqOptions.model_validate({"sshTimeoutSeconds": 10, "numUpdates": 5, **self.options})
        image = "registry.test/metaseq:1"
        return metaseq.job(metaseq.Run(options=options, pool=pool, nodes=self.nodes, image=image, **PLATFORM))


def node(name: str, sku: str) -> Object:
    labels = {"node.kubernetes.io/instance-type": sku, "kubernetes.azure.com/agentpool": "gpu"}
    status = {"capacity": {"cpu": str(skus.sku(sku).vcpus)}, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": name, "labels": labels}, "status": status}
