from __future__ import annotations

import copy
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from components.context import GpuPool
from k8s.objects import Object
from simulator.sandbox.spec import Mount
from tests.support import pools
from tests.unit.simulator.sandbox.sandboxes import (
    PLATFORM,
    SYSTEM_NODE,
    Sandboxes,
    SandboxPod,
    node_name,
    put,
)
from workloads._lib.mpi import MpiJob
from workloads.metaseq import manifests as metaseq
from workloads.metaseq.options import MetaseqOptions
from workloads.nccl_allreduce import manifests as nccl
from workloads.nccl_allreduce.options import NcclAllreduceOptions
from workloads.nccl_bisection import manifests as bisection
from workloads.nccl_bisection.options import NcclBisectionOptions


@functools.cache
def key_pair() -> tuple[str, str]:
    """Returns a private key like Volcano's ssh plugin (PKCS#1), and its authorized_keys line."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private.decode(), public.decode()


@dataclass
class Job(Sandboxes, ABC):
    nodes: int = 2
    absent_workers: set[int] = field(default_factory=set)
    gpus_allocated: int | None = None

    def __post_init__(self) -> None:
        job = self.job(pools.pool(self.sku))
        tasks = {task["name"]: task for task in job.spec()["tasks"]}
        self.name, self.mounted_at = job.files.config_map, job.files.folder
        self.files = dict(job.files.contents)
        self.master: Object = copy.deepcopy(tasks["mpimaster"]["template"])
        self.worker: Object = copy.deepcopy(tasks["mpiworker"]["template"])

    @abstractmethod
    def job(self, pool: GpuPool) -> MpiJob:
        """Returns the workload's job on the pool."""

    def set_env(self, name: str, value: str) -> None:
        """The ranks inherit the variable from the master's manifest."""
        env = self.master["spec"]["containers"][0]["env"]
        env[:] = [entry for entry in env if entry["name"] != name] + [{"name": name, "value": value}]

    def run(self, then: Callable[[], None] = lambda: None) -> tuple[int, str]:
        """Returns the master's exit code and log. Calls `then` after its end, while workers still run."""
        private, public = key_pair()
        ssh = {"id_rsa": private, "id_rsa.pub": public, "authorized_keys": public}
        ssh["config"] = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
        hosts = "".join(f"{self.name}-mpiworker-{index}.{self.name}\n" for index in range(self.nodes))
        for file in put(self.folder / "ssh", ssh).iterdir():
            file.chmod(0o600)
        mounts = (
            Mount(put(self.folder / "files", self.files), self.mounted_at),
            Mount(self.folder / "ssh", "/root/.ssh"),
            Mount(put(self.folder / "svc", {"mpiworker.host": hosts}), "/etc/volcano"),
        )
        pods = self.make_pods(mounts)
        with self.running(pods, {pods[index].name for index in self.absent_workers}):
            (ended,) = self.wait(pods[-1].name)
            then()
        return ended

    def make_pods(self, mounts: tuple[Mount, ...] = ()) -> list[SandboxPod]:
        """Returns the workers in order, then the master."""
        held = self.allocated | ({} if self.gpus_allocated is None else {"gpus": self.gpus_allocated})
        pods = [
            SandboxPod(f"{self.name}-mpiworker-{n}", {}, node_name(n), mounts, held=held) for n in range(self.nodes)
        ]
        pods.append(SandboxPod(f"{self.name}-mpimaster-0", {}, SYSTEM_NODE, mounts))
        for pod in pods:
            template = self.master if pod is pods[-1] else self.worker
            pod.spec = template["spec"] | {"hostname": pod.name, "subdomain": self.name}
        return pods


class NcclJob(Job):
    def job(self, pool: GpuPool) -> MpiJob:
        options = NcclAllreduceOptions.model_validate({"sshTimeoutSeconds": 10, **self.options})
        image = "registry.test/nccl-test:1"
        return nccl.job(nccl.Run(options=options, pool=pool, nodes=self.nodes, image=image, **PLATFORM))


class BisectionJob(Job):
    def job(self, pool: GpuPool) -> MpiJob:
        options = NcclBisectionOptions.model_validate({"sshTimeoutSeconds": 10, **self.options})
        image = "registry.test/nccl-test:1"
        return bisection.job(bisection.Run(options=options, pool=pool, nodes=self.nodes, image=image, **PLATFORM))


class MetaseqJob(Job):
    def job(self, pool: GpuPool) -> MpiJob:
        options = MetaseqOptions.model_validate({"sshTimeoutSeconds": 10, "numUpdates": 5, **self.options})
        image = "registry.test/metaseq:1"
        return metaseq.job(metaseq.Run(options=options, pool=pool, nodes=self.nodes, image=image, **PLATFORM))
