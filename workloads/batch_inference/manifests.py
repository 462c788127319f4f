"""Builds the job's manifests from options and hardware."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from config.schema.overrides import merge
from k8s.scheduling import tolerations
from workloads._lib import base as _base
from workloads._lib.files import Files, texts
from workloads._lib.hugging_face import token_variable
from workloads._lib.pods import GpuPod, Manifest, Mount, environment
from workloads._lib.team import LOST, mark, share_of_node
from workloads.batch_inference.memory import UTILIZATION
from workloads.batch_inference.options import NAME, BatchInferenceOptions

SERVER, GENERATOR = "vllm", "load-generator"
PORT = 8000
CACHE, TOGETHER = "/cache", "/run/together"
_HUB = f"{CACHE}/huggingface"
_GENERATOR_CPUS, _GENERATOR_GIB = 2, 4
_PERCENTILES = "95,99"
_KEPT_FAILED = "10m"
"""The time that a failed job keeps its pods and its quota."""
_SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True, kw_only=True)
class Run(_base.Run[BatchInferenceOptions]):
    name: str
    claim: str

    @property
    def result(self) -> str:
        """The path of the results. It contains a hash of all options that affect the results."""
        options = self.options
        made_of = [
            *(options.model, options.input_length, options.output_length, options.prompts, options.concurrency),
            *(options.gpus, self.pool.sku.name, self.image),
        ]
        return f"{CACHE}/results/{self.name}/{options.run}-{mark(*made_of)}.json"


def claim_name(model: str) -> str:
    """Returns the name of the claim for a model, in Kubernetes' syntax. Stacks of the team share the claim."""
    return "model-" + re.sub(r"[^a-z0-9.]+", "-", model.lower())


def files(run: Run) -> Files:
    return Files(config_map=run.name, folder=f"/opt/{NAME}", contents=texts(_SCRIPTS))


def server_arguments(run: Run) -> list[str]:
    """Returns the arguments of `vllm serve`. The server has no authentication, but only the pod can reach it."""
    options = run.options
    values = {
        "--host": "127.0.0.1",
        "--port": PORT,
        "--tensor-parallel-size": options.gpus,
        "--max-model-len": options.longest,
        "--gpu-memory-utilization": UTILIZATION,
        # By default, vLLM prefetches files from NFS. From SMB, it would map files and read page by page over the
        # network (vllm 0.33.0, model_executor/model_loader/weight_utils.py).
        "--safetensors-load-strategy": "prefetch",
    }
    return [options.model, *_words(values)]


def load_arguments(run: Run) -> list[str]:
    options = run.options
    values = {
        "--backend": "vllm",
        "--port": PORT,
        "--model": options.model,
        "--dataset-name": "random",
        "--random-input-len": options.input_length,
        "--random-output-len": options.output_length,
        "--num-prompts": options.prompts,
        "--max-concurrency": options.concurrency,
        "--temperature": 0,
        "--percentile-metrics": "ttft,tpot,itl,e2el",
        "--metric-percentiles": _PERCENTILES,
    }
    about = [f"vm_size={run.pool.sku.name}", f"gpu={run.pool.sku.gpu_model}", f"gpus={options.gpus}"]
    return [*_words(values), "--ignore-eos", "--disable-tqdm", "--metadata", *about]


def _words(values: Mapping[str, object]) -> list[str]:
    return [str(word) for pair in values.items() for word in pair]


def template(run: Run) -> Manifest:
    own, options = files(run), run.options
    mounts = [own.mount(), *_volumes(run)]
    pod = GpuPod(
        pool=run.pool,
        rdma_resource=run.rdma_resource,
        container={
            "name": SERVER,
            "image": run.image,
            "command": ["/bin/bash", own.path("serve.sh")],
            "args": server_arguments(run),
            "env": [token_variable(run.name)] if run.options.hugging_face_token else [],
            "ports": [{"name": "http", "containerPort": PORT}],
            "resources": {
                "requests": share_of_node(run.pool.sku, options.gpus, cpus=_GENERATOR_CPUS, memory_gib=_GENERATOR_GIB)
            },
            "securityContext": _CONFINED,
        },
        variables={"HF_HOME": _HUB, "TOGETHER": TOGETHER, "VLLM_NO_USAGE_STATS": "1"},
        mounts=mounts,
        beside=[_generator(run, own, mounts)],
        gpus=options.gpus,
        node_check=run.node_check,
        spec={
            "tolerations": [*tolerations(run.pool.taints), *LOST],
            "automountServiceAccountToken": False,
        },
        overrides=merge({"metadata": {"annotations": _SHOWN}}, options.pod_overrides),
    )
    return pod.template()


_SHOWN = {"kubectl.kubernetes.io/default-container": GENERATOR}
_CONFINED = {"allowPrivilegeEscalation": False}


def _generator(run: Run, own: Files, mounts: list[Mount]) -> Manifest:
    """Returns the load generator. It needs neither a GPU nor the token: the server has already downloaded the files."""
    variables = {
        "HF_HOME": _HUB,
        "HF_HUB_OFFLINE": "1",
        # The image requests all GPUs of the node. If the runtime accepts that, only this variable prevents it.
        "NVIDIA_VISIBLE_DEVICES": "void",
        "PORT": str(PORT),
        "PROMPTS": str(run.options.prompts),
        "RESULT": run.result,
        "TOGETHER": TOGETHER,
    }
    return {
        "name": GENERATOR,
        "image": run.image,
        "command": ["/bin/bash", own.path("load.sh")],
        "args": load_arguments(run),
        "env": environment(variables),
        "resources": {"requests": {"cpu": str(_GENERATOR_CPUS), "memory": f"{_GENERATOR_GIB}Gi"}},
        "securityContext": _CONFINED,
        "volumeMounts": [mount.mount() for mount in mounts],
    }


def _volumes(run: Run) -> list[Mount]:
    return [cache(run), Mount(name="together", path=TOGETHER, source={"emptyDir": {}})]


def cache(run: Run) -> Mount:
    return Mount(name="cache", path=CACHE, source={"persistentVolumeClaim": {"claimName": run.claim}})


def job(run: Run) -> Manifest:
    """Returns a Job with one pod, without metadata.

    In an AppWrapper, a failed pod ends the job, which then restarts. A plain Job creates another pod. If the node is
    lost, it does so immediately, because it has no podFailurePolicy: that requires the JobSpec.podReplacementPolicy
    "Failed", which would wait until the node returns.
    """
    spec = {"backoffLimit": 0 if run.options.app_wrapper else run.options.restarts, "template": template(run)}
    return {"apiVersion": "batch/v1", "kind": "Job", "spec": spec}


def wrapper_options(run: Run) -> dict[str, str]:
    """Returns AppWrapper's options: the retries, and how long pods may take to end (they need half a minute).

    When no retry is left, pods stay for a while: otherwise their logs are deleted immediately (AppWrapper's page on
    fault tolerance).
    """
    return {
        "retryLimit": str(run.options.restarts),
        "forcefulDeletionGracePeriodDuration": "2m",
        "deletionOnFailureGracePeriodDuration": _KEPT_FAILED,
    }
