"""The job as plain data: pure functions of options and hardware."""

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
"""Its containers, by the names that its scripts have of them."""
PORT = 8000
CACHE, TOGETHER = "/cache", "/run/together"
_HUB = f"{CACHE}/huggingface"
_GENERATOR_CPUS, _GENERATOR_GIB = 2, 4
"""One process, and the tokenizer: est."""
_PERCENTILES = "95,99"
_KEPT_FAILED = "10m"
"""The job holds its quota meanwhile."""
_SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True, kw_only=True)
class Run(_base.Run[BatchInferenceOptions]):
    """One batch."""

    name: str
    """Of the job, its ConfigMap and Secret."""
    claim: str
    """Of the model, and of all results with it."""

    @property
    def result(self) -> str:
        """Where its results lie: another for whatever would make others."""
        options = self.options
        made_of = [
            *(options.model, options.input_length, options.output_length, options.prompts, options.concurrency),
            *(options.gpus, self.pool.sku.name, self.image),
        ]
        return f"{CACHE}/results/{self.name}/{options.run}-{mark(*made_of)}.json"


def claim_name(model: str) -> str:
    """One for each model, whichever stack of the team runs it: as Kubernetes takes names."""
    return "model-" + re.sub(r"[^a-z0-9.]+", "-", model.lower())


def files(run: Run) -> Files:
    """The scripts of both containers."""
    return Files(config_map=run.name, folder=f"/opt/{NAME}", contents=texts(_SCRIPTS))


def server_arguments(run: Run) -> list[str]:
    """Words behind `vllm serve`. Nobody but the pod's own containers reaches it, as it asks for no key."""
    options = run.options
    values = {
        "--host": "127.0.0.1",
        "--port": PORT,
        "--tensor-parallel-size": options.gpus,
        "--max-model-len": options.longest,
        "--gpu-memory-utilization": UTILIZATION,
        # Of a share by NFS vLLM would do so itself; of one by SMB it maps files, and faults them in page by page over
        # the network (vllm 0.33.0, model_executor/model_loader/weight_utils.py).
        "--safetensors-load-strategy": "prefetch",
    }
    return [options.model, *_words(values)]


def load_arguments(run: Run) -> list[str]:
    """Words behind `vllm bench serve`, but for where results go. Each answer is as long as it is asked to be."""
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
    """The pod: the server, which has the GPUs, and beside it the load generator."""
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
    """It has no GPU, and no token: what it needs of the model, the server has fetched before it begins."""
    variables = {
        "HF_HOME": _HUB,
        "HF_HUB_OFFLINE": "1",
        # The image asks for all GPUs of the node; where the runtime listens to that, only this takes it back.
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
    """Of both containers: the model with all results, and a folder in which they tell each other that they run."""
    return [cache(run), Mount(name="together", path=TOGETHER, source={"emptyDir": {}})]


def cache(run: Run) -> Mount:
    """The claim of the model, where all results lie too."""
    return Mount(name="cache", path=CACHE, source={"persistentVolumeClaim": {"claimName": run.claim}})


def job(run: Run) -> Manifest:
    """A Job of one pod, without its metadata.

    In an AppWrapper a pod that fails is the job's end, and all of it begins anew. Alone, the Job makes another pod, and
    for one on a node that is gone at once: with a podFailurePolicy, which might not count that, it would wait until the
    pod has ended, and so for the node (JobSpec.podReplacementPolicy, of which that policy leaves "Failed" alone).
    """
    spec = {"backoffLimit": 0 if run.options.app_wrapper else run.options.restarts, "template": template(run)}
    return {"apiVersion": "batch/v1", "kind": "Job", "spec": spec}


def wrapper_options(run: Run) -> dict[str, str]:
    """How often it is started anew; how long its pods may take to end, which they do in half a minute.

    And how long they stay when it has failed for good, so that somebody can read why: else their logs go at once
    (AppWrapper's page on fault tolerance).
    """
    return {
        "retryLimit": str(run.options.restarts),
        "forcefulDeletionGracePeriodDuration": "2m",
        "deletionOnFailureGracePeriodDuration": _KEPT_FAILED,
    }
