"""The pods of each workload, as its manifests and its operator make them."""

from __future__ import annotations

import copy
import functools
import os
import signal
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from components.context import BlobVolume, GpuPool
from config.data.blobfuse import mount_options
from k8s.objects import Object
from simulator.kubelet.csi import blobfuse
from simulator.kubelet.csi.mount import BlobMount
from simulator.sandbox.library import olmo_data
from simulator.sandbox.sandbox import Mount
from simulator.sandbox.uplink import Uplink
from tests.support import pools
from tests.support.fake_container import FakeContainer
from tests.unit.simulator.sandbox.blob_server import SAS, Blobs
from tests.unit.simulator.sandbox.sandboxes import (
    NAMESPACE,
    PLATFORM,
    SYSTEM_NODE,
    Sandboxes,
    SandboxPod,
    node_name,
    put,
)
from workloads._lib.mpi import MpiJob
from workloads._lib.pods import Mount as PodMount
from workloads._lib.team_training import CHECKPOINTS, DATA
from workloads.batch_inference import manifests as inference
from workloads.batch_inference.options import BatchInferenceOptions
from workloads.metaseq import manifests as metaseq
from workloads.metaseq.options import MetaseqOptions
from workloads.nccl_allreduce import manifests as nccl
from workloads.nccl_allreduce.options import NcclAllreduceOptions
from workloads.nccl_bisection import manifests as bisection
from workloads.nccl_bisection.options import NcclBisectionOptions
from workloads.olmo import manifests as olmo
from workloads.olmo import preparation
from workloads.olmo.options import OlmoOptions
from workloads.pytorch_pretraining import manifests as pretraining
from workloads.pytorch_pretraining.options import PretrainingOptions
from workloads.ray_finetuning import manifests as finetuning
from workloads.ray_finetuning.options import FinetuningOptions


@functools.cache
def key_pair() -> tuple[str, str]:
    """A private key as Volcano's ssh plugin makes it (PKCS#1), and its authorized_keys line."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private.decode(), public.decode()


def team_mounts(data: bool) -> Object:
    """The volumes of a team's training."""
    found = {"checkpoints": PodMount(name="checkpoints", path=CHECKPOINTS, source={})}
    return {**found, "data": PodMount(name="data", path=DATA, source={}) if data else None}


# -- MPI ---------------------------------------------------------------------------------------------------------------


@dataclass
class Job(Sandboxes, ABC):
    """An MPI job of some workload."""

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
        """What the workload makes of its options on this pool."""

    def set_env(self, name: str, value: str) -> None:
        """In the master's manifest; the ranks get it from there."""
        env = self.master["spec"]["containers"][0]["env"]
        env[:] = [entry for entry in env if entry["name"] != name] + [{"name": name, "value": value}]

    def run(self, then: Callable[[], None] = lambda: None) -> tuple[int, str]:
        """Exit code and log of the master. `then` is called once that has ended, while the workers are still there."""
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
        """The workers in order, then the master."""
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
    """The NCCL all-reduce."""

    def job(self, pool: GpuPool) -> MpiJob:
        options = NcclAllreduceOptions.model_validate({"sshTimeoutSeconds": 10, **self.options})
        image = "registry.test/nccl-test:1"
        return nccl.job(nccl.Run(options=options, pool=pool, nodes=self.nodes, image=image, **PLATFORM))


class BisectionJob(Job):
    """The search for the bad link."""

    def job(self, pool: GpuPool) -> MpiJob:
        options = NcclBisectionOptions.model_validate({"sshTimeoutSeconds": 10, **self.options})
        image = "registry.test/nccl-test:1"
        return bisection.job(bisection.Run(options=options, pool=pool, nodes=self.nodes, image=image, **PLATFORM))


class MetaseqJob(Job):
    """The Metaseq training, of few updates."""

    def job(self, pool: GpuPool) -> MpiJob:
        options = MetaseqOptions.model_validate({"sshTimeoutSeconds": 10, "numUpdates": 5, **self.options})
        image = "registry.test/metaseq:1"
        return metaseq.job(metaseq.Run(options=options, pool=pool, nodes=self.nodes, image=image, **PLATFORM))


# -- torchrun ----------------------------------------------------------------------------------------------------------


@dataclass
class Training(Sandboxes):
    """OLMo's training. The data of `put_data` are there, with their manifest."""

    env: dict[str, str] = field(default_factory=dict)
    absent: set[int] = field(default_factory=set)
    """Node ranks that never come."""
    leaves: int | None = None
    """Node rank that goes away once the training has begun."""
    read_only_checkpoints: bool = False
    profile: str = ""
    """Of config/data/blobfuse.yaml, by which each node mounts checkpoints; by default all nodes have one folder."""

    def __post_init__(self) -> None:
        options = OlmoOptions.model_validate({"maxFiles": 2, "evaluate": False, "stopAt": 5, **self.options})
        volumes = {
            "data": BlobVolume(claim="data", read_only=True, annotations={}, upload_secret="up"),
            "checkpoints": BlobVolume(claim="checkpoints", read_only=False, annotations={}, upload_secret=None),
        }
        where = {"pool": pools.pool(self.sku, scratch="/mnt/nvme"), "nodes": self.nodes, "rdma_resource": pools.RDMA}
        run = olmo.Run(options=options, image="registry.test/olmo:1", **where, **volumes)  # type: ignore[arg-type]
        self.template: Object = copy.deepcopy(olmo.job_spec(run)["template"])
        self.files = olmo.files(run.pool)
        for name in ("data", *(f"{kind}-{rank}" for kind in ("scratch", "checkpoints") for rank in range(self.nodes))):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def put_data(self, *paths: str, manifest: str | None = None) -> None:
        """Files of the data container; `manifest` is the path of one that lists them."""
        files = {path: olmo_data.content(f"/{path}") for path in paths}
        if manifest:
            files[manifest] = "".join(f"{olmo_data.FILE_BYTES}\t{path}\n" for path in paths).encode()
        for path, content in files.items():
            target = self.folder / "data" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)

    def put_alive(self, path: str, mtime: int = 1000) -> None:
        """The blob by which the preparation says that it is at work; `mtime` in seconds since 1970."""
        target = self.folder / "data" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
        os.utime(target, (mtime, mtime))

    def run(self) -> list[tuple[int, str]]:
        """Exit code and log of each node, by rank."""
        files = Mount(put(self.folder / "files", self.files.contents), self.files.folder)
        pods = [self._pod_of(rank, files) for rank in range(self.nodes)]
        ranks = [rank for rank in range(self.nodes) if rank not in self.absent]
        if self.leaves is not None:
            self.meanwhile = lambda _: self._leave(pods[0].name, pods[self.leaves or 0].name)
        with self._mounts(ranks), self.running(pods, {pods[rank].name for rank in self.absent}):
            return self.wait()

    def checkpoints(self, rank: int) -> Path:
        return self.folder / (f"checkpoints-{rank}" if self.profile else "checkpoints-0")

    def first_log(self) -> Path:
        return self.folder / "olmo-0-abc0.log"

    def _pod_of(self, rank: int, files: Mount) -> SandboxPod:
        own = {"NAMESPACE": NAMESPACE, "JOB_COMPLETION_INDEX": str(rank), "MEETING_TIMEOUT_S": "60", **self.env}
        mounts = (
            files,
            Mount(self.folder / "data", olmo.DATA),
            Mount(self.checkpoints(rank), olmo.CHECKPOINTS, self.read_only_checkpoints),
            Mount(self.folder / f"scratch-{rank}", olmo.SCRATCH, read_only=False),
        )
        spec = self.template["spec"] | {"hostname": f"olmo-{rank}"}
        name = f"olmo-{rank}-abc{rank}"  # the Job controller's end is random
        return SandboxPod(name, spec, node_name(rank), mounts, own, held=self.allocated)

    def _leave(self, first: str, leaving: str) -> None:
        if "Starting training" in self.log(first):
            self.processes[leaving].kill()

    @contextmanager
    def _mounts(self, ranks: list[int]) -> Iterator[None]:
        """One container of blobs, which each node has as a folder of its own."""
        if not self.profile:
            yield
            return
        container, lock, told = FakeContainer(), threading.Lock(), list[str]()
        options = blobfuse.parse(mount_options(self.profile, "v", hierarchical_namespace=True))
        how = {"read_only": False, "report": told.append, "remembers_s": options.remembers_s, "lock": lock}
        mounts = [BlobMount(container.as_client(), self.checkpoints(rank), **how) for rank in ranks]  # type: ignore[arg-type]
        yield
        for mount in mounts:
            mount.close()
        assert told == []


def prepare(folder: Path, blobs: Blobs, sas: str = SAS, **env: str) -> tuple[int, str]:
    """Exit code and log of one try of OLMo's preparation; what it keeps between tries is in the container alone."""
    options = OlmoOptions.model_validate({"maxFiles": 2, "evaluate": False})
    job = preparation.job_spec(options, image="registry.test/olmo:1", upload_secret="up")
    staging = put(folder / f"staging-{time.monotonic_ns()}", {})
    mounts = (
        Mount(put(folder / "prepare-files", preparation.files().contents), preparation.files().folder),
        Mount(put(folder / "upload", {"url": blobs.url, "sas": sas}), "/run/upload"),
        Mount(staging, "/staging", read_only=False),
    )
    pod = SandboxPod("olmo-data-x", job["template"]["spec"], SYSTEM_NODE, mounts, env)
    uplink = Uplink(folder / "world", lambda address: address == ("127.0.0.1", blobs.port), blobs.authority)
    cluster = Sandboxes(folder)
    try:
        with cluster.running([pod]):
            return cluster.wait()[0]
    finally:
        uplink.stop()


@dataclass
class Pretraining(Sandboxes):
    """The pre-training, again and again on the same checkpoints."""

    name = "stack-pytorch-pretraining"

    def run(self) -> list[tuple[int, str]]:
        """Exit code and log of each node, by rank."""
        short = {"modelSize": "125m", "steps": 30, "checkpointSteps": 10}
        given = {**short, "numNodes": self.nodes, "team": NAMESPACE, **self.options}
        run = pretraining.Run(
            options=PretrainingOptions.model_validate(given),
            pool=pools.pool(self.sku),
            nodes=self.nodes,
            image="registry.test/pytorch-pretraining:1",
            rdma_resource=pools.RDMA,
            name=self.name,
            namespace=NAMESPACE,
            **team_mounts("dataContainer" in given),
        )
        template: Object = copy.deepcopy(pretraining.template(run, "Never"))
        mounts = (
            Mount(put(self.folder / "files", pretraining.files(run).contents), "/opt/pytorch-pretraining"),
            Mount(put(self.folder / "data", {}), DATA),
            Mount(put(self.folder / "checkpoints", {}), CHECKPOINTS, read_only=False),
        )
        asked = template["spec"]["containers"][0]["resources"]["limits"]
        held = {"gpus": int(asked["nvidia.com/gpu"]), "hcas": int(asked.get(pools.RDMA, 0))}
        pods = []
        for rank in range(self.nodes):
            operators = {"RANK": str(rank), "MASTER_ADDR": self.pod(0), "MASTER_PORT": "23456"}
            labels = {"training.kubeflow.org/replica-type": "worker" if rank else "master"}
            pods.append(SandboxPod(self.pod(rank), template["spec"], node_name(rank), mounts, operators, labels, held))
        with self.running(pods):
            return self.wait()

    def pod(self, rank: int) -> str:
        """As the training operator names them."""
        return f"{self.name}-worker-{rank - 1}" if rank else f"{self.name}-master-0"

    @property
    def output(self) -> Path:
        """Where it has its checkpoints and metrics."""
        return self.folder / "checkpoints" / NAMESPACE / self.name

    def terminate(self, rank: int) -> None:
        """As a kubelet does first."""
        self.shim(self.pod(rank)).signal(signal.SIGTERM)


# -- Ray ---------------------------------------------------------------------------------------------------------------


@dataclass
class Finetuning(Sandboxes):
    """The fine-tuning, with pods as KubeRay 1.6.2 makes them, again and again on the same checkpoints."""

    name = "stack-ray-finetuning"
    host = f"stack-ray-finetuning-abcde-head-svc.{NAMESPACE}.svc.cluster.local"
    patience_s: int = 60
    """For how long Ray Train waits for GPUs each time."""

    def run(self) -> tuple[int, str]:
        """Exit code and log of the submitter, whose job is run while head and workers live."""
        short = {"model": "facebook/opt-125m", "epochs": 4, "batch": 16, "checkpointSteps": 5}
        given = {**short, "numNodes": self.nodes, "team": NAMESPACE, **self.options}
        run = finetuning.Run(
            options=FinetuningOptions.model_validate(given),
            pool=pools.pool(self.sku),
            nodes=self.nodes,
            image="registry.test/ray-finetuning:1",
            rdma_resource=pools.RDMA,
            name=self.name,
            namespace=NAMESPACE,
            **team_mounts("dataContainer" in given),
        )
        self.spec, output = finetuning.ray_job(run), run.output
        self.output = self.folder / output.lstrip("/")
        uplink = Uplink(self.folder / "world", lambda _: False, "", pods=self._dial)
        try:
            with self.running(map(self._pod_of, self._names())):
                return self.wait("submitter")[0]
        finally:
            uplink.stop()

    def _names(self) -> list[str]:
        return ["head", *(f"worker-{index}" for index in range(self.nodes)), "submitter"]

    def _pod_of(self, name: str) -> SandboxPod:
        env = {
            "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": str(self.patience_s),
            "RAY_DASHBOARD_ADDRESS": f"{self.host}:8265",
            "RAY_JOB_SUBMISSION_ID": f"{self.name}-fghij",
        }
        mounts = (
            Mount(put(self.folder / "data", {}), DATA),
            Mount(put(self.folder / "checkpoints", {}), CHECKPOINTS, read_only=False),
        )
        spec = {"containers": [{"name": "ray", "image": "registry.test/ray-finetuning:1", "resources": {}}]}
        kind = {"ray.io/cluster": f"{self.name}-abcde", "ray.io/node-type": name.partition("-")[0]}
        gpus = self.options.get("gpus", 8) if name.startswith("worker") else 0
        place = node_name(self._names().index(name))
        labels = kind if name != "submitter" else {}
        return SandboxPod(name, spec, place, mounts, env, labels, {"gpus": gpus}, argv=self._command(name))

    def _command(self, name: str) -> tuple[str, ...]:
        """As KubeRay has it: controllers/ray/common/pod.go and job.go. A head takes some seconds until it is ready."""
        start, ports = "ulimit -n 65536; ray start", "--dashboard-agent-listen-port=52365 --metrics-export-port=8080"
        ready = f"until ray health-check --address {self.host}:6379 > /dev/null 2>&1; do sleep 0.2; done;"
        if name == "head":
            more = "--block --dashboard-host=0.0.0.0 --num-cpus=0 --memory=8589934592"
            return "/bin/bash", "-c", "--", f"{start} --head {ports} {more}"
        if name.startswith("worker"):
            joins = f"{start} {ports} --address={self.host}:6379 --block --num-cpus=75 --num-gpus=8"
            return "/bin/bash", "-c", "--", f"{ready} {joins}"
        address, job = f"--address http://{self.host}:8265", f"{self.name}-fghij"
        submit = f"ray job submit {address} --no-wait --submission-id {job} -- {self.spec['entrypoint']} ;"
        status = f"if ! ray job status {address} {job} >/dev/null 2>&1 ; then"
        return "/bin/bash", "-ce", "--", f"{ready} {status} {submit} fi ; ray job logs {address} --follow {job}"

    def _dial(self, address: str, port: int) -> socket.socket | None:
        number = int(address.split(".")[2])
        return self.shim(self._names()[number]).dial(port)


# -- vLLM --------------------------------------------------------------------------------------------------------------


_CONTAINERS = ("vllm", "load-generator")


@dataclass
class Inference(Sandboxes):
    """The batch, both of its containers, again and again on the same cache."""

    silence_s: int = 60
    """After which the scripts take the other container for dead."""
    runs: int = 0
    name = "stack-batch-inference-abcde"

    def run(self) -> dict[str, tuple[int, str]]:
        """Exit code and log of each container, by name."""
        self.runs += 1
        given = {"prompts": 40, "concurrency": 8, "team": NAMESPACE, **self.options}
        planned = inference.Run(
            options=BatchInferenceOptions.model_validate(given),
            pool=pools.pool(self.sku),
            nodes=1,
            image="docker.io/vllm/vllm-openai:v1",
            rdma_resource=pools.RDMA,
            name="stack-batch-inference",
            claim="cache",
        )
        self.result = self.folder / "cache" / planned.result.removeprefix(f"{inference.CACHE}/")
        spec: Object = copy.deepcopy(inference.template(planned)["spec"])
        files = {
            name: text.replace("silence_s=60", f"silence_s={self.silence_s}")
            for name, text in inference.files(planned).contents.items()
        }
        folders = {
            "files": put(self.folder / "files", files),
            "cache": put(self.folder / "cache", {}),
            "together": put(self.folder / f"together-{self.runs}", {}),  # an emptyDir: each pod has its own
        }
        gpus = int(spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])
        with self.running([SandboxPod(self.name, spec, held={"gpus": gpus})], {self.name}):
            for which, container in enumerate(spec["containers"]):
                self._start_container(which, container, spec, folders)
            self.processes[self.name] = self.processes["vllm"]  # the pod runs
            return dict(zip(_CONTAINERS, self.wait(*_CONTAINERS), strict=True))

    def _start_container(self, which: int, container: Object, spec: Object, folders: dict[str, Path]) -> None:
        others = [each for each in spec["containers"] if each is not container]
        mounts = tuple(
            Mount(folders[mount["name"]], mount["mountPath"], bool(mount.get("readOnly")))
            for mount in container["volumeMounts"]
            if mount["name"] in folders
        )
        run_dir = self.folder / "run" / str(self.runs) / container["name"]
        env = {entry["name"]: entry.get("value", "a-token") for entry in container["env"]}
        neighbours = {port["containerPort"]: each["name"] for each in others for port in each.get("ports", [])}
        fields = {"run_dir": run_dir, "env": env, "mounts": mounts, "neighbours": neighbours}
        self.start(self.name, which, container["name"], **fields)
