"""OLMo without a cluster: its real manifests and scripts, hand-made pods and world, real sandboxes."""

from __future__ import annotations

import copy
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from components.context import BlobVolume
from config.facts import skus
from config.facts.blobfuse import mount_options
from k8s.objects import Object
from simulator.kubelet.csi import blobfuse
from simulator.kubelet.csi.mount import BlobMount
from simulator.sandbox import sandbox
from simulator.sandbox.images import image_name
from simulator.sandbox.library import olmo_data
from simulator.sandbox.sandbox import Mount
from simulator.sandbox.uplink import Uplink
from simulator.world import snapshot
from simulator.world.faults import Fault
from simulator.world.hardware import NodeHardware, node_hardware
from tests.support.fake_container import FakeContainer
from tests.support.pools import H100, RDMA, pool
from tests.units.simulator.sandbox.blob_server import SAS, Blobs
from tests.units.simulator.sandbox.job import NAMESPACE, node, node_name
from workloads._files import Files
from workloads.olmo import manifests, preparation
from workloads.olmo.options import OlmoOptions

IMAGE = "registry.test/olmo:1"
MOST_SECONDS = 120
DATA = BlobVolume(claim="data", read_only=True, annotations={}, upload_secret="up")
CHECKPOINTS = BlobVolume(claim="checkpoints", read_only=False, annotations={}, upload_secret=None)


@dataclass
class Training:
    """Change what it holds, then `run`. The data of `prepared` files is there, with its manifest."""

    folder: Path
    nodes: int = 1
    sku: str = H100
    options: Object = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    absent: set[int] = field(default_factory=set)
    """Node ranks that never come."""
    leaves: int | None = None
    """Node rank that goes away once the training has begun."""
    rdma: bool = True
    read_only_checkpoints: bool = False
    profile: str = ""
    """Of config/facts/blobfuse.yaml, by which each node mounts checkpoints; by default all nodes have one folder."""
    _shown: object = field(default=None, init=False)
    """What the world was last written of."""

    def __post_init__(self) -> None:
        options = OlmoOptions.model_validate({"maxFiles": 2, "evaluate": False, "stopAt": 5, **self.options})
        run = manifests.Run(
            options=options,
            pool=pool(self.sku, scratch="/mnt/nvme"),
            nodes=self.nodes,
            image=IMAGE,
            rdma_resource=RDMA,
            data=DATA,
            checkpoints=CHECKPOINTS,
        )
        self.template: Object = copy.deepcopy(manifests.job_spec(run)["template"])
        self.files = manifests.files(run.pool)
        for name in ("data", "checkpoints", *(f"scratch-{rank}" for rank in range(self.nodes))):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def put_data(self, *paths: str, manifest: str | None = None) -> None:
        """Files of the data container; `manifest` is the path of one that lists them."""
        for path in paths:
            target = self.folder / "data" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(olmo_data.content(f"/{path}"))
        if manifest:
            target = self.folder / "data" / manifest
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("".join(f"{olmo_data.FILE_BYTES}\t{path}\n" for path in paths))

    def put_alive(self, path: str, mtime: int = 1000) -> None:
        """The blob by which the preparation says that it is at work; `mtime` in seconds since 1970."""
        target = self.folder / "data" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
        os.utime(target, (mtime, mtime))

    def run(self) -> list[tuple[int, str]]:
        """Exit code and log of each node, by rank."""
        write_files(self.files, self.folder / "files")
        ranks = [rank for rank in range(self.nodes) if rank not in self.absent]
        with self._mounts(ranks), self._containers(ranks) as processes:
            deadline = time.monotonic() + MOST_SECONDS
            while any(process.poll() is None for process in processes.values()):
                assert time.monotonic() < deadline, self.log(ranks[0])
                self._write_world(processes)
                if self.leaves is not None and "Starting training" in self.log(0):
                    processes[self.leaves].kill()
                time.sleep(0.1)
        return [(processes[rank].returncode, self.log(rank)) for rank in ranks]

    def _checkpoints(self, rank: int) -> Path:
        return self.folder / (f"checkpoints-{rank}" if self.profile else "checkpoints")

    @contextmanager
    def _mounts(self, ranks: list[int]) -> Iterator[None]:
        """One container of blobs, which each node has as a folder of its own."""
        container, lock, told = FakeContainer(), threading.Lock(), list[str]()
        options = (
            blobfuse.parse(mount_options(self.profile, "v", hierarchical_namespace=True)) if self.profile else None
        )
        mounts = [
            BlobMount(
                container.as_client(),
                self._checkpoints(rank),
                read_only=False,
                report=told.append,
                remembers_s=options.remembers_s,
                lock=lock,
            )
            for rank in ranks
            if options
        ]
        yield
        for mount in mounts:
            mount.close()
        assert told == []

    def log(self, rank: int) -> str:
        return (self.folder / f"rank-{rank}.log").read_text()

    @contextmanager
    def _containers(self, ranks: list[int]) -> Iterator[dict[int, subprocess.Popen[bytes]]]:
        self._write_world({})
        processes = {rank: self._start(rank) for rank in ranks}
        try:
            yield processes
        finally:
            for process in processes.values():
                process.kill()
                process.wait(10)

    def _start(self, rank: int) -> subprocess.Popen[bytes]:
        container = self.template["spec"]["containers"][0]
        given = {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}
        added = {"NAMESPACE": NAMESPACE, "JOB_COMPLETION_INDEX": str(rank), "MEETING_TIMEOUT_S": "60"}
        allocation = self._allocation()
        spec = sandbox.SandboxSpec(
            pod=f"{NAMESPACE}/{_pod_name(rank)}",
            image=image_name(container["image"]),
            argv=tuple(container["command"]),
            hostname=f"olmo-{rank}",
            hardware=self._hardware(node_name(rank)),
            run_dir=self.folder / f"run-{rank}",
            world_dir=self.folder / "world",
            env={**given, **added, **self.env},
            workdir=container["workingDir"],
            mounts=(
                Mount(self.folder / "files", self.files.folder),
                Mount(self.folder / "data", manifests.DATA),
                Mount(self._checkpoints(rank), manifests.CHECKPOINTS, self.read_only_checkpoints),
                Mount(self.folder / f"scratch-{rank}", manifests.SCRATCH, read_only=False),
            ),
            gpus=tuple(allocation["gpus"]),
            hcas=tuple(allocation["hcas"]),
            shm_bytes=snapshot.shm_bytes(self._pod(rank, {})),
            capabilities=frozenset(container["securityContext"]["capabilities"]["add"]),
        )
        with (self.folder / f"rank-{rank}.log").open("wb") as log:
            return sandbox.start(spec, log.fileno())

    def _pod(self, rank: int, processes: dict[int, subprocess.Popen[bytes]]) -> Object:
        placed = {"nodeName": node_name(rank), "hostname": f"olmo-{rank}"}
        ends = {None: "Running", 0: "Succeeded"}
        phase = ends.get(processes[rank].poll(), "Failed") if rank in processes else "Pending"
        return {
            "metadata": {"namespace": NAMESPACE, "name": _pod_name(rank)},
            "spec": self.template["spec"] | placed,
            "status": {"phase": phase, "podIP": f"10.244.{rank}.4", "conditions": []},
        }

    def _allocation(self) -> Object:
        size = skus.sku(self.sku)
        hcas = size.infiniband.hcas if size.infiniband and self.rdma else 0
        return {"gpus": list(range(size.gpus)), "hcas": [f"mlx5_{index}" for index in range(hcas)]}

    def _hardware(self, name: str) -> NodeHardware:
        return node_hardware(skus.sku(self.sku), name, self.faults)

    def _write_world(self, processes: dict[int, subprocess.Popen[bytes]]) -> None:
        ranks = range(self.nodes)
        keys = {f"{NAMESPACE}/{_pod_name(rank)}": rank for rank in ranks}
        pods = [self._pod(rank, processes) for rank in ranks]
        states = {key: snapshot.states_of(self.folder / f"run-{rank}" / "pod") for key, rank in keys.items()}
        if (now := ([pod["status"] for pod in pods], list(self.faults), states)) == self._shown:
            return
        self._shown = now
        world = snapshot.snapshot(
            [node(node_name(rank), self.sku) for rank in ranks],
            pods,
            {node_name(rank): self._hardware(node_name(rank)) for rank in ranks},
            dict.fromkeys(keys, self._allocation()),
            states,
        )
        snapshot.write(world, self.folder / "world")


def prepare(folder: Path, blobs: Blobs, sas: str = SAS, **env: str) -> tuple[int, str]:
    """Exit code and log of one try of the preparation; what it keeps between tries is in the container alone."""
    options = OlmoOptions.model_validate({"maxFiles": 2, "evaluate": False})
    spec = preparation.job_spec(options, image=IMAGE, upload_secret="up")
    container = spec["template"]["spec"]["containers"][0]
    write_files(preparation.files(), folder / "prepare-files")
    for name in ("upload", f"staging-{time.monotonic_ns()}"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "upload" / "url").write_text(blobs.url)
    (folder / "upload" / "sas").write_text(sas)
    world = snapshot.snapshot([], [_preparing_pod(spec)], {}, {}, {})
    snapshot.write(world, folder / "world")
    uplink = Uplink(folder / "world", lambda address: address == ("127.0.0.1", blobs.port), blobs.authority)
    staging = sorted(folder.glob("staging-*"))[-1]
    run = sandbox.SandboxSpec(
        pod=f"{NAMESPACE}/olmo-data-x",
        image=image_name(container["image"]),
        argv=tuple(container["command"]),
        hostname="olmo-data-x",
        hardware=node_hardware(skus.sku("Standard_D4ads_v5"), "aks-system-11111111-vmss000000", []),
        run_dir=folder / "prepare-run",
        world_dir=folder / "world",
        env={**{entry["name"]: entry["value"] for entry in container["env"]}, **env},
        mounts=(
            Mount(folder / "prepare-files", preparation.files().folder),
            Mount(folder / "upload", "/run/upload"),
            Mount(staging, "/staging", read_only=False),
        ),
    )
    try:
        with (folder / "prepare.log").open("wb") as log:
            code = sandbox.start(run, log.fileno()).wait(120)
    finally:
        uplink.stop()
    return code, (folder / "prepare.log").read_text()


def write_files(files: Files, folder: Path) -> None:
    """What the ConfigMap holds."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.contents.items():
        (folder / name).write_text(text)


def _preparing_pod(spec: Object) -> Object:
    placed = {"nodeName": "aks-system-11111111-vmss000000", "hostname": "olmo-data-x"}
    return {
        "metadata": {"namespace": NAMESPACE, "name": "olmo-data-x"},
        "spec": spec["template"]["spec"] | placed,
        "status": {"phase": "Running", "podIP": "10.244.9.9", "conditions": []},
    }


def _pod_name(rank: int) -> str:
    """As the Job controller names pods: the end is random."""
    return f"olmo-{rank}-abc{rank}"
