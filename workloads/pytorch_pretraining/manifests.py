"""Builds the job's manifests from options and hardware."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from k8s.scheduling import tolerations
from workloads._lib.files import Files, nccl_variables, shared, texts, topology_file, topology_path
from workloads._lib.pods import GpuPod, Manifest
from workloads._lib.team import LOST, share_of_node
from workloads._lib.team_training import DATA, TrainingRun
from workloads.pytorch_pretraining.memory import saving_seconds
from workloads.pytorch_pretraining.options import NAME, PretrainingOptions

CONTAINER = "pytorch"
"""The name that the training operator's webhook requires."""
HEAD = 128
"""Dimensions of a head. OPT's 64 dimensions are slower (docs/performance.md)."""
UNFIT = 2
"""The trainer's exit code for errors that a retry cannot fix (pretraining/options.py)."""
_SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True, kw_only=True)
class Run(TrainingRun[PretrainingOptions]):
    shared_class: str = ""


def files(run: Run) -> Files:
    contents = {**shared("infiniband.sh"), **texts(_SCRIPTS), **topology_file(run.pool)}
    return Files(config_map=run.name, folder=f"/opt/{NAME}", contents=contents)


def arguments(run: Run) -> list[str]:
    options, size = run.options, run.options.size
    values = {
        "--layers": size.layers,
        "--width": size.width,
        "--heads": size.width // HEAD,
        "--vocabulary": options.vocabulary,
        "--sequence": options.sequence,
        "--batch": options.sequences,
        "--steps": options.all_steps,
        "--rate": f"{size.learning_rate:g}",
        "--checkpoint-steps": options.checkpoint_steps,
        "--peak-tflops": run.pool.sku.gpu_bf16_tflops,
        "--output": run.output,
        **({"--data": DATA} if run.data else {}),
    }
    words = [str(word) for pair in values.items() for word in pair]
    return [*words, *(["--fp8"] if options.fp8 else [])]


def grace_seconds(run: Run) -> int:
    return saving_seconds(run.options, run.nodes, run.shared_class)


def template(run: Run, restart_policy: str) -> Manifest:
    """Returns the template of all pods. A training on one node needs no InfiniBand, and so no right to pin memory."""
    own = files(run)
    pod = GpuPod(
        pool=run.pool,
        rdma_resource=run.rdma_resource,
        container={
            "name": CONTAINER,
            "image": run.image,
            "command": ["/bin/bash", own.path("launch.sh")],
            "args": arguments(run),
            "resources": {"requests": share_of_node(run.pool.sku, run.gpus)},
        },
        variables={
            **nccl_variables(run.pool, own, sharp=False),
            "NODES": str(run.nodes),
            "GPUS_PER_NODE": str(run.gpus),
        },
        mounts=[own.mount(), run.checkpoints, *([run.data] if run.data else [])],
        gpus=run.gpus if run.nodes == 1 else None,
        topology=topology_path(own),
        node_check=run.node_check,
        spec={
            "tolerations": [*tolerations(run.pool.taints), *LOST],
            "restartPolicy": restart_policy,
            "terminationGracePeriodSeconds": grace_seconds(run),
            "automountServiceAccountToken": False,
        },
        overrides=run.options.pod_overrides,
    )
    return pod.template()


def pytorch_job(run: Run) -> Manifest:
    """Returns a PyTorchJob without metadata: one pod on each node; the first is the master.

    In an AppWrapper, a failed pod ends the job, and all pods restart, because torchrun's ranks cannot join later.
    Without an AppWrapper, the failed pod restarts and waits for the others.
    """
    wrapped = run.options.app_wrapper
    policy = "Never" if wrapped else "OnFailure"
    pods = {"restartPolicy": policy, "template": template(run, policy)}
    replicas = {"Master": 1, **({"Worker": run.nodes - 1} if run.nodes > 1 else {})}
    limit = {} if wrapped else {"backoffLimit": run.options.restarts * run.nodes}
    spec = {
        "runPolicy": {"cleanPodPolicy": "None", **limit},
        "pytorchReplicaSpecs": {kind: {"replicas": count, **pods} for kind, count in replicas.items()},
    }
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": spec}


def wrapper_options(run: Run) -> dict[str, str]:
    minutes = math.ceil(grace_seconds(run) / 60) + 1
    return {
        "retryLimit": str(run.options.restarts),
        "terminalExitCodes": str(UNFIT),
        "forcefulDeletionGracePeriodDuration": f"{minutes}m",
    }
