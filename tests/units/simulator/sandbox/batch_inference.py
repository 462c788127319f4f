"""The batch without a cluster: its real manifests and scripts, both containers in real sandboxes, a hand-made world."""

from __future__ import annotations

import copy
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from config.facts import skus
from k8s.objects import Object
from simulator.sandbox import sandbox
from simulator.sandbox.images import image_name
from simulator.sandbox.sandbox import Mount
from simulator.world import snapshot
from simulator.world.hardware import node_hardware
from tests.support.pools import H100, RDMA, pool
from tests.units.simulator.sandbox.job import NAMESPACE, node, node_name
from workloads.batch_inference import manifests
from workloads.batch_inference.options import BatchInferenceOptions

NAME, POD = "stack-batch-inference", f"{NAMESPACE}/stack-batch-inference-abcde"
SMALL = {"prompts": 40, "concurrency": 8}
MOST_SECONDS = 90
Processes = dict[str, "subprocess.Popen[bytes]"]


@dataclass
class Inference:
    """Change what it holds, then `run`, again and again on the same cache."""

    folder: Path
    sku: str = H100
    options: Object = field(default_factory=dict)
    env: Object = field(default_factory=dict)
    """More of the server's, or with None less."""
    meanwhile: Callable[[Inference, Processes], None] = lambda *_: None
    """Is called every so often."""
    silence_s: int = 60
    """After which the scripts take the other container for dead."""
    lost_gpus: bool = False
    runs: int = 0

    def run(self) -> dict[str, tuple[int, str]]:
        """Exit code and log of each container, by name."""
        self.runs += 1
        self.planned = manifests.Run(
            options=BatchInferenceOptions.model_validate({**SMALL, "team": NAMESPACE, **self.options}),
            pool=pool(self.sku),
            nodes=1,
            image="docker.io/vllm/vllm-openai:v1",
            rdma_resource=RDMA,
            name=NAME,
            claim="cache",
        )
        self.template: Object = copy.deepcopy(manifests.template(self.planned))
        for folder in ("cache", "files", self._together):
            (self.folder / folder).mkdir(exist_ok=True)
        for name, text in manifests.files(self.planned).contents.items():
            (self.folder / "files" / name).write_text(text.replace("silence_s=60", f"silence_s={self.silence_s}"))
        self.write_world()
        processes = {each["name"]: self._start(each) for each in self.template["spec"]["containers"]}
        deadline = time.monotonic() + MOST_SECONDS
        try:
            while any(process.poll() is None for process in processes.values()):
                assert time.monotonic() < deadline, [self.log(name) for name in processes]
                self.meanwhile(self, processes)
                time.sleep(0.1)
        finally:
            for process in processes.values():
                process.kill()
                process.wait(10)
        return {name: (process.returncode, self.log(name)) for name, process in processes.items()}

    @property
    def result(self) -> Path:
        """The file of results, on this machine."""
        return self.folder / "cache" / self.planned.result.removeprefix(f"{manifests.CACHE}/")

    def log(self, container: str) -> str:
        return (self.folder / f"{container}-{self.runs}.log").read_text()

    @property
    def _together(self) -> str:
        """An emptyDir: each pod has one of its own."""
        return f"together-{self.runs}"

    def _start(self, container: Object) -> subprocess.Popen[bytes]:
        more = self.env if container["name"] == manifests.SERVER else {}
        env = {entry["name"]: entry.get("value", "a-token") for entry in container["env"]} | more
        others = [each for each in self.template["spec"]["containers"] if each is not container]
        folders = {
            "files": self.folder / "files",
            "cache": self.folder / "cache",
            "together": self.folder / self._together,
        }
        spec = sandbox.SandboxSpec(
            pod=POD,
            image=image_name(container["image"]),
            argv=(*container["command"], *container["args"]),
            hostname=POD.partition("/")[2],
            hardware=node_hardware(skus.sku(self.sku), node_name(0), []),
            run_dir=self.folder / "run" / str(self.runs) / container["name"],
            world_dir=self.folder / "world",
            env={name: value for name, value in env.items() if value is not None},
            mounts=tuple(
                Mount(folders[mount["name"]], mount["mountPath"], bool(mount.get("readOnly")))
                for mount in container["volumeMounts"]
                if mount["name"] in folders
            ),
            gpus=tuple(self._allocation()["gpus"]),
            neighbours={port["containerPort"]: each["name"] for each in others for port in each.get("ports", [])},
        )
        spec.run_dir.mkdir(parents=True)
        with (self.folder / f"{container['name']}-{self.runs}.log").open("wb") as log:
            return sandbox.start(spec, log.fileno())

    def _allocation(self) -> Object:
        asked = self.template["spec"]["containers"][0]["resources"]["limits"]
        return {"gpus": list(range(int(asked["nvidia.com/gpu"]))), "hcas": []}

    def write_world(self) -> None:
        pod = {
            "metadata": {"namespace": NAMESPACE, "name": POD.partition("/")[2]},
            "spec": self.template["spec"] | {"nodeName": node_name(0)},
            "status": {"phase": "Running", "podIP": "10.244.0.4", "conditions": []},
        }
        hardware = node_hardware(skus.sku(self.sku), node_name(0), [])
        if self.lost_gpus:
            hardware = replace(hardware, gpus=tuple(replace(gpu, healthy=False) for gpu in hardware.gpus))
        world = snapshot.snapshot(
            [node(node_name(0), self.sku)],
            [pod],
            {node_name(0): hardware},
            {POD: self._allocation()},
            {POD: {}},
        )
        snapshot.write(world, self.folder / "world")
