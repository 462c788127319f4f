from __future__ import annotations

import copy
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from components.context import BlobVolume
from config.data.blobfuse import mount_options
from k8s.objects import Object
from simulator.kubelet.csi import blobfuse
from simulator.kubelet.csi.mount import BlobMount
from simulator.sandbox.library import olmo_data
from simulator.sandbox.spec import Mount
from simulator.sandbox.uplink import Uplink
from tests.support import pools
from tests.support.fake_container import FakeContainer
from tests.unit.simulator.sandbox.blob_server import SAS, Blobs
from tests.unit.simulator.sandbox.sandboxes import (
    NAMESPACE,
    SYSTEM_NODE,
    Sandboxes,
    SandboxPod,
    node_name,
    put,
)
from workloads._lib.pods import Mount as PodMount
from workloads._lib.team_training import CHECKPOINTS, DATA
from workloads.olmo import manifests as olmo
from workloads.olmo import preparation
from workloads.olmo.options import OlmoOptions
from workloads.pytorch_pretraining import manifests as pretraining
from workloads.pytorch_pretraining.options import PretrainingOptions


def team_run(pods: Sandboxes, name: str, given: Object) -> Object:
    checkpoints = PodMount(name="checkpoints", path=CHECKPOINTS, source={})
    data = PodMount(name="data", path=DATA, source={}) if "dataContainer" in given else None
    image = f"registry.test/{name.removeprefix('stack-')}:1"
    own = {"name": name, "image": image, "namespace": NAMESPACE, "checkpoints": checkpoints, "data": data}
    return pools.place(pods.sku, pods.nodes) | own


@dataclass
class Training(Sandboxes):
    env: dict[str, str] = field(default_factory=dict)
    absent: set[int] = field(default_factory=set)
    """Node ranks that do not start."""
    leaves: int | None = None
    """The node rank that ends after the training's start."""
    read_only_checkpoints: bool = False
    profile: str = ""
    """Each node's profile in config/data/blobfuse.yaml for checkpoints; by default all nodes share a folder."""

    def __post_init__(self) -> None:
        options = OlmoOptions.model_validate({"maxFiles": 2, "evaluate": False, "stopAt": 5, **self.options})
        volumes = {
            "data": BlobVolume(claim="data", read_only=True, annotations={}, upload_secret="up"),
            "checkpoints": BlobVolume(claim="checkpoints", read_only=False, annotations={}, upload_secret=None),
        }
        given = pools.place(self.sku, self.nodes, scratch="/mnt/nvme") | {"image": "registry.test/olmo:1"} | volumes
        run = olmo.Run(options=options, **given)
        self.template: Object = copy.deepcopy(olmo.job_spec(run)["template"])
        self.files = olmo.files(run.pool)
        for name in ("data", *(f"{kind}-{rank}" for kind in ("scratch", "checkpoints") for rank in range(self.nodes))):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def put_data(self, *paths: str, manifest: str | None = None) -> None:
        """Also writes a list of the paths to `manifest`."""
        files = {path: olmo_data.content(f"/{path}") for path in paths}
        if manifest:
            files[manifest] = "".join(f"{olmo_data.FILE_BYTES}\t{path}\n" for path in paths).encode()
        for path, content in files.items():
            target = self.folder / "data" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)

    def put_alive(self, path: str, mtime: int = 1000) -> None:
        """The preparation's heartbeat is in seconds since 1970."""
        target = self.folder / "data" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
        os.utime(target, (mtime, mtime))

    def run(self) -> list[tuple[int, str]]:
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
        name = f"olmo-{rank}-abc{rank}"  # the Job controller's random characters
        return SandboxPod(name, spec, node_name(rank), mounts, own, held=self.allocated)

    def _leave(self, first: str, leaving: str) -> None:
        if "Starting training" in self.log(first):
            self.processes[leaving].kill()

    @contextmanager
    def _mounts(self, ranks: list[int]) -> Iterator[None]:
        if not self.profile:
            yield
            return
        container, lock, errors = FakeContainer(), threading.Lock(), list[str]()
        options = blobfuse.parse(mount_options(self.profile, "v", hierarchical_namespace=True))
        how = {"read_only": False, "report": errors.append, "remembers_s": options.remembers_s, "lock": lock}
        mounts = [BlobMount(container.as_client(), self.checkpoints(rank), **how) for rank in ranks]  # type: ignore[arg-type]
        yield
        for mount in mounts:
            mount.close()
        assert errors == []


def prepare(folder: Path, blobs: Blobs, sas: str = SAS, **env: str) -> tuple[int, str]:
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
    """Runs share their checkpoints."""

    name = "stack-pytorch-pretraining"

    def run(self) -> list[tuple[int, str]]:
        short = {"modelSize": "125m", "steps": 30, "checkpointSteps": 10}
        given = {**short, "numNodes": self.nodes, "team": NAMESPACE, **self.options}
        run = pretraining.Run(
            options=PretrainingOptions.model_validate(given),
            **team_run(self, self.name, given),
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
        """Returns the training operator's name."""
        return f"{self.name}-worker-{rank - 1}" if rank else f"{self.name}-master-0"

    @property
    def output(self) -> Path:
        return self.folder / "checkpoints" / NAMESPACE / self.name

    def terminate(self, rank: int) -> None:
        self.shim(self.pod(rank)).signal(signal.SIGTERM)
