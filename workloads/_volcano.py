"""MPI jobs on Volcano: a master that launches, one worker per node, all scheduled together."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as kubernetes

from components.context import WorkloadContext
from config.facts.scheduling import ON_SYSTEM_POOL, VOLCANO
from workloads._pods import Manifest, Mount, pod_template


def mpi_job_spec(*, workers: int, worker: Manifest, master: Manifest, node_check: bool = False) -> Manifest:
    """The spec of a Volcano Job. `worker` and `master` are pod templates ({"metadata": ..., "spec": ...}).

    The ssh plugin gives all pods one key pair and names to reach each other by; the svc plugin writes the workers'
    names to /etc/volcano/mpiworker.host. The master decides: the job is complete, or has failed, when it is. With a
    `node_check`, a worker that fails is on a node that turned out to be bad: all begin anew, on others.
    """
    policies = {"policies": [{"event": "PodFailed", "action": "RestartJob"}]} if node_check else {}
    return {
        "minAvailable": workers + 1,
        "schedulerName": VOLCANO,
        "queue": "default",
        "maxRetry": 3,
        "plugins": {"ssh": [], "svc": []},
        # A node that goes away takes its pod along: start again, on nodes that are there.
        "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
        "tasks": [
            {
                "name": "mpimaster",
                "replicas": 1,
                "policies": [
                    {"event": "TaskCompleted", "action": "CompleteJob"},
                    {"event": "PodFailed", "action": "TerminateJob"},
                ],
                "template": master,
            },
            {"name": "mpiworker", "replicas": workers, **policies, "template": worker},
        ],
    }


def master_template(container: Manifest, *, service_account: pulumi.Input[str], mounts: Sequence[Mount]) -> Manifest:
    """A pod without devices on the system pool, tainted or not, so that GPU nodes are left to the workers."""
    requests = {"cpu": "500m", "memory": "1Gi"}
    mounted = [mount.mount() for mount in mounts]
    spec = {
        "restartPolicy": "Never",
        "serviceAccountName": service_account,
        **ON_SYSTEM_POOL,
        "containers": [container | {"resources": {"requests": requests}, "volumeMounts": mounted}],
    }
    return pod_template(spec, mounts)


def volcano_job(
    name: str, spec: Manifest, *, context: WorkloadContext, depends_on: list[pulumi.Resource]
) -> kubernetes.apiextensions.CustomResource:
    """The Job. Volcano forbids changing its spec, which the provider cannot know of a custom resource.

    So it is replaced, and deleted first because its name stays: in the foreground, as the provider does unless told
    otherwise, after its pods. Volcano may never look at a Job whose predecessor's pods still end (volcano-sh/volcano
    #3968 and #5973, both open in 1.15).
    """
    return kubernetes.apiextensions.CustomResource(
        name,
        api_version="batch.volcano.sh/v1alpha1",
        kind="Job",
        metadata={"name": name, "namespace": context.namespace},
        spec=spec,
        opts=context.job(depends_on),
    )
