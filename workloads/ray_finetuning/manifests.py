"""Builds the job's manifests from options and hardware."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from config.schema.overrides import merge
from k8s.scheduling import tolerations
from workloads._lib.gang import in_gang
from workloads._lib.hugging_face import token_variable
from workloads._lib.pods import GpuPod, Manifest, Mount, on_pools, pod_template
from workloads._lib.team import LOST, mark, share_of_node
from workloads._lib.team_training import DATA, TrainingRun
from workloads.ray_finetuning.options import FinetuningOptions

RAY_VERSION = "2.60.0"
"""The image's Ray version (docker/ray-finetuning/Dockerfile). From version 2.53, KubeRay uses HTTP probes, which need
no wget (ray-operator 1.6.2, controllers/ray/common/pod.go, supportsUnifiedHealthCheck).
"""
AUTH_OPTIONS = {"mode": "token"}
"""Token authentication. By default, Ray's jobs API needs no credentials, so every pod in the cluster could run code.
KubeRay creates a token for each Ray cluster, in a Secret with its name, and passes it to head, workers and submitter
(ray-operator 1.6.2, controllers/ray/common/pod.go, SetContainerTokenAuthEnvVars; rayjob_controller.go,
configureSubmitterContainer).
"""
HEAD, WORKER, SUBMITTER = "ray-head", "ray-worker", "ray-job-submitter"
"""Names of containers; KubeRay sets the last one."""
DASHBOARD_PORT = 8265
_HEAD_NEEDS = {"cpu": "2", "memory": "8Gi"}
"""Estimated needs of Ray's services, its dashboard and the driver, which loads torch."""
_SUBMITTER_NEEDS = {"cpu": "500m", "memory": "1Gi"}
_BESIDE_CPUS, _BESIDE_GIB = 3, 9
"""CPUs and memory for head and submitter on a node where a worker has all GPUs."""
_ASKS = "ray job status --address http://$RAY_DASHBOARD_ADDRESS $RAY_JOB_SUBMISSION_ID >/dev/null"
_HEAD_LOST: Manifest = {
    "exec": {"command": ["/bin/sh", "-c", _ASKS]},
    "initialDelaySeconds": 90,
    "periodSeconds": 30,
    "timeoutSeconds": 20,
    "failureThreshold": 4,
}
"""Liveness probe that ends the submitter if the head's node is dead. Otherwise it would follow the log forever (Ray
2.60.0, job/sdk.py, tail_job_logs: a WebSocket without heartbeat), and KubeRay would wait for it.
"""
_AWAY_FROM_HEADS: Manifest = {
    "weight": 100,
    "podAffinityTerm": {
        "labelSelector": {"matchLabels": {"ray.io/node-type": "head"}},
        "topologyKey": "kubernetes.io/hostname",
    },
}
"""Anti-affinity of the submitter to heads. If both are on a lost node, Kubernetes marks the submitter's Job as failed
only when the node returns or is deleted (kubernetes/kubernetes#125510), and KubeRay waits for that.
"""
_OBJECT_STORE = str(2**30)
"""Bytes of Ray's object store, which is little used. By default, the store gets part of the machine's memory, and Ray
does not start if /dev/shm is smaller (Ray 2.60.0, _private/services.py, determine_plasma_store_config).
"""


@dataclass(frozen=True, kw_only=True)
class Run(TrainingRun[FinetuningOptions]):
    @property
    def workers(self) -> int:
        return self.nodes * self.gpus

    @property
    def output(self) -> str:
        """The folder of this training's output. It depends on the options that distinguish trainings
        (finetuning/train.py, `_about`).

        In the folder of another training, the loop would refuse to continue.
        """
        options = self.options
        learnt = (options.model, options.data_container, options.longest, options.evaluation)
        how = (options.rank, options.pack, options.packs(self.workers), options.epochs)
        return f"{super().output}/{mark(*learnt, *how)}"


def arguments(run: Run) -> list[str]:
    options = run.options
    values = {
        "--workers": run.workers,
        "--model": options.model,
        "--output": run.output,
        **({"--data": DATA} if run.data else {}),
        "--rank": options.rank,
        "--longest": options.longest,
        "--pack": options.pack,
        "--batch": options.packs(run.workers),
        "--epochs": options.epochs,
        "--evaluation": options.evaluation,
        "--checkpoint-steps": options.checkpoint_steps,
    }
    words = [str(word) for pair in values.items() for word in pair]
    targets = options.known.targets if options.known else []
    return [*words, *(["--targets", *targets] if targets else [])]


def head(run: Run) -> Manifest:
    """Returns the pod of Ray's services and the driver. It has no GPU, and `num-cpus` excludes it from training."""
    return in_gang(run.name, _plain_pod(run, HEAD, _HEAD_NEEDS, [run.checkpoints], limits=_HEAD_NEEDS))


def worker(run: Run) -> Manifest:
    """Returns a pod with GPUs. Several nodes need no InfiniBand, because LoRA's gradients are only megabytes."""
    pod = GpuPod(
        pool=run.pool,
        rdma_resource=run.rdma_resource,
        container={
            "name": WORKER,
            "image": run.image,
            "resources": {"requests": share_of_node(run.pool.sku, run.gpus, cpus=_BESIDE_CPUS, memory_gib=_BESIDE_GIB)},
            **({"env": [token_variable(run.name)]} if run.options.hugging_face_token else {}),
        },
        mounts=[run.checkpoints, *([run.data] if run.data else [])],
        gpus=run.gpus,
        node_check=run.node_check,
        spec={"tolerations": _tolerations(run), "automountServiceAccountToken": False},
        overrides=run.options.pod_overrides,
    )
    return in_gang(run.name, pod.template())


def submitter(run: Run) -> Manifest:
    limits = {"memory": _SUBMITTER_NEEDS["memory"]}
    pod = _plain_pod(run, SUBMITTER, _SUBMITTER_NEEDS, [], limits=limits, livenessProbe=_HEAD_LOST)
    apart = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_AWAY_FROM_HEADS]}}
    found: Manifest = merge(pod, {"spec": {"affinity": apart}})
    return found


def _plain_pod(
    run: Run, name: str, needs: Manifest, mounts: Sequence[Mount], limits: Manifest, **more: Any
) -> Manifest:
    """Returns a pod without GPUs. It runs on GPU nodes, because Kueue only admits pods of teams' jobs there."""
    container = {
        "name": name,
        "image": run.image,
        "resources": {"requests": needs, "limits": limits},
        **({"volumeMounts": [mount.mount() for mount in mounts]} if mounts else {}),
        **more,
    }
    spec = {
        "restartPolicy": "Never",
        "schedulerName": run.pool.scheduler,
        "tolerations": _tolerations(run),
        "affinity": on_pools(run.pool),
        "automountServiceAccountToken": False,
        "containers": [container],
    }
    return pod_template(spec, mounts)


def _tolerations(run: Run) -> list[Manifest]:
    return [*tolerations(run.pool.taints), *LOST]


def ray_job(run: Run) -> Manifest:
    """Returns the spec of a RayJob. Each try creates a Ray cluster and deletes it at the end, as Kueue requires.

    With K8sJobMode, the submitter is a separate pod, and kubectl can show the driver's log there. With HTTPMode, no pod
    has that log. With SidecarMode, the submitter is in the head's pod, and the job fails if the head is lost.
    """
    return {
        "entrypoint": shlex.join(["python", "-m", "finetuning.ray_train", *arguments(run)]),
        "submissionMode": "K8sJobMode",
        "submitterPodTemplate": submitter(run),
        "shutdownAfterJobFinishes": True,
        # KubeRay ignores exit codes, and retries after every failure except a passed deadline (ray-operator 1.6.2,
        # controllers/ray/rayjob_controller.go, checkBackoffLimitAndUpdateStatusIfNeeded).
        "backoffLimit": run.options.restarts,
        "rayClusterSpec": {
            "rayVersion": RAY_VERSION,
            "authOptions": AUTH_OPTIONS,
            "headGroupSpec": {
                "rayStartParams": {"num-cpus": "0", "object-store-memory": _OBJECT_STORE},
                "template": head(run),
            },
            "workerGroupSpecs": [
                {
                    "groupName": "gpus",
                    **dict.fromkeys(("replicas", "minReplicas", "maxReplicas"), run.nodes),
                    "rayStartParams": {"object-store-memory": _OBJECT_STORE},
                    "template": worker(run),
                }
            ],
        },
    }


def gang_pods(run: Run) -> int:
    """Returns the number of pods that start together: head and workers. The cluster of a retry uses the same gang."""
    return 1 + run.nodes
