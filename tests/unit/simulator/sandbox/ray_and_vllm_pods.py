from __future__ import annotations

import copy
import socket
from dataclasses import dataclass
from pathlib import Path

from k8s.objects import Object
from simulator.sandbox.spec import Mount
from simulator.sandbox.uplink import Uplink
from tests.support import pools
from tests.unit.simulator.sandbox.sandboxes import (
    NAMESPACE,
    Sandboxes,
    SandboxPod,
    node_name,
    put,
)
from tests.unit.simulator.sandbox.training_pods import team_run
from workloads._lib.team_training import CHECKPOINTS, DATA
from workloads.batch_inference import manifests as inference
from workloads.batch_inference.options import BatchInferenceOptions
from workloads.ray_finetuning import manifests as finetuning
from workloads.ray_finetuning.options import FinetuningOptions


@dataclass
class Finetuning(Sandboxes):
    """Pods of KubeRay 1.6.2. Runs share checkpoints."""

    name = "stack-ray-finetuning"
    host = f"stack-ray-finetuning-abcde-head-svc.{NAMESPACE}.svc.cluster.local"
    start_timeout_s: int = 60
    """Seconds that Ray Train waits for GPUs."""

    def run(self) -> tuple[int, str]:
        short = {"model": "facebook/opt-125m", "epochs": 4, "batch": 16, "checkpointSteps": 5}
        given = {**short, "numNodes": self.nodes, "team": NAMESPACE, **self.options}
        run = finetuning.Run(
            options=FinetuningOptions.model_validate(given),
            **team_run(self, self.name, given),
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
            "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": str(self.start_timeout_s),
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
        """Returns KubeRay's command (controllers/ray/common/pod.go and job.go)."""
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


_CONTAINERS = ("vllm", "load-generator")


@dataclass
class Inference(Sandboxes):
    """Runs share their cache."""

    silence_s: int = 60
    """Seconds until scripts assume that the other container was killed."""
    runs: int = 0
    name = "stack-batch-inference-abcde"

    def run(self) -> dict[str, tuple[int, str]]:
        self.runs += 1
        small = {"model": "facebook/opt-125m", "prompts": 40, "concurrency": 8}
        given = {**small, "team": NAMESPACE, **self.options}
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
            "together": put(self.folder / f"together-{self.runs}", {}),  # an emptyDir, one per pod
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
