"""The job as plain data: pure functions of options and hardware."""

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
"""Of the image (docker/ray-finetuning/Dockerfile). By it KubeRay chooses probes: from 2.53 on by HTTP, with no wget
(ray-operator 1.6.2, controllers/ray/common/pod.go, supportsUnifiedHealthCheck).
"""
AUTH_OPTIONS = {"mode": "token"}
"""By default Ray's API of jobs asks for no credentials: every pod in the cluster could run code here. KubeRay creates a
token for each cluster, as a Secret of its name, and passes it to head, workers and submitter (ray-operator 1.6.2,
controllers/ray/common/pod.go, SetContainerTokenAuthEnvVars; rayjob_controller.go, configureSubmitterContainer).
"""
HEAD, WORKER, SUBMITTER = "ray-head", "ray-worker", "ray-job-submitter"
"""Containers; the last one's name is KubeRay's."""
DASHBOARD_PORT = 8265
_HEAD_NEEDS = {"cpu": "2", "memory": "8Gi"}
"""Ray's own services, its dashboard and the driver, which loads torch: est."""
_SUBMITTER_NEEDS = {"cpu": "500m", "memory": "1Gi"}
_BESIDE_CPUS, _BESIDE_GIB = 3, 9
"""What both of them take of a node, on which a worker has all GPUs."""
_ASKS = "ray job status --address http://$RAY_DASHBOARD_ADDRESS $RAY_JOB_SUBMISSION_ID >/dev/null"
"""By the variables that KubeRay gives it."""
_HEAD_LOST: Manifest = {
    "exec": {"command": ["/bin/sh", "-c", _ASKS]},
    "initialDelaySeconds": 90,
    "periodSeconds": 30,
    "timeoutSeconds": 20,
    "failureThreshold": 4,
}
"""Ends a submitter whose head is on a dead node: it would follow the log for ever (Ray 2.60.0, job/sdk.py,
tail_job_logs: by a WebSocket without heartbeat), and KubeRay takes the job for failed only once its submitter is.
"""
_AWAY_FROM_HEADS: Manifest = {
    "weight": 100,
    "podAffinityTerm": {
        "labelSelector": {"matchLabels": {"ray.io/node-type": "head"}},
        "topologyKey": "kubernetes.io/hostname",
    },
}
"""Of a submitter that is on the head's node when it is lost, nobody says that it has ended before the node is back or
deleted, and only then Kubernetes calls its Job failed (kubernetes/kubernetes#125510), and KubeRay the job.
"""
_OBJECT_STORE = str(2**30)
"""Bytes for what Ray's processes hand each other, which is little. Without it Ray takes a part of the machine's memory,
and does not start where /dev/shm is smaller (Ray 2.60.0, _private/services.py, determine_plasma_store_config).
"""


@dataclass(frozen=True, kw_only=True)
class Run(TrainingRun[FinetuningOptions]):
    """One fine-tuning."""

    @property
    def workers(self) -> int:
        """Processes: one for each GPU."""
        return self.nodes * self.gpus

    @property
    def output(self) -> str:
        """Another folder for each other training, as the loop tells them apart (finetuning/train.py, `_about`).

        In one folder it would refuse to go on, as often as it may be started anew.
        """
        options = self.options
        learnt = (options.model, options.data_container, options.longest, options.evaluation)
        how = (options.rank, options.pack, options.packs(self.workers), options.epochs)
        return f"{super().output}/{mark(*learnt, *how)}"


def arguments(run: Run) -> list[str]:
    """Words behind `python -m finetuning.ray_train`."""
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
    """The pod with Ray's services and the driver: no GPU, and by `num-cpus` nothing of the training."""
    return in_gang(run.name, _plain_pod(run, HEAD, _HEAD_NEEDS, [run.checkpoints], limits=_HEAD_NEEDS))


def worker(run: Run) -> Manifest:
    """A pod with GPUs. LoRA's gradients are some megabytes, so that several nodes do without InfiniBand."""
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
    """The pod that hands the driver to Ray, whose log is the driver's; it comes when the gang runs."""
    limits = {"memory": _SUBMITTER_NEEDS["memory"]}
    pod = _plain_pod(run, SUBMITTER, _SUBMITTER_NEEDS, [], limits=limits, livenessProbe=_HEAD_LOST)
    apart = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_AWAY_FROM_HEADS]}}
    found: Manifest = merge(pod, {"spec": {"affinity": apart}})
    return found


def _plain_pod(
    run: Run, name: str, needs: Manifest, mounts: Sequence[Mount], limits: Manifest, **more: Any
) -> Manifest:
    """One beside those with GPUs: Kueue lets all pods of a team's jobs onto GPU nodes, and nowhere else."""
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
    """The spec of a RayJob: a cluster for each try, which goes with it, as Kueue demands.

    A submitter of its own (K8sJobMode), since its log is the driver's, for kubectl: by HTTPMode KubeRay submits, and no
    pod has that log; by SidecarMode it goes with the head, and a lost head is the job's failure.
    """
    return {
        "entrypoint": shlex.join(["python", "-m", "finetuning.ray_train", *arguments(run)]),
        "submissionMode": "K8sJobMode",
        "submitterPodTemplate": submitter(run),
        "shutdownAfterJobFinishes": True,
        # Of any failure but a deadline that has passed: KubeRay knows no exit codes (ray-operator 1.6.2,
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
    """Pods that begin together: head and workers. A cluster of another try has as many, of the same gang."""
    return 1 + run.nodes
