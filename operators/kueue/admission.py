"""The admission policies of teams' namespaces (`policies/`), which reject objects that bypass the queue or affect other
teams.

RBAC is not enough (rights.py): jobs may have any content, AppWrapper creates objects that members may not create, and
other users may have more rights in these namespaces. Kueue holds jobs without a queue, but does not report them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from config.data.scheduling import GPU_RESOURCE, LOCAL_QUEUE, NVIDIA_RUNTIME, QUEUE_LABEL, TEAM_LABELS
from config.schema.operators import MLBATCH_NAMESPACE
from k8s.templates import filled
from operators._lib.rights import policy_binding
from operators.kueue.rights import CLASSES
from operators.monitoring import NAMESPACE as MONITORING_NAMESPACE

QUEUES, PODS, SERVICES, HOPELESS = "team-queues", "team-pods", "team-services", "team-hopeless-jobs"
"""The names of the policies and of their bindings. The last policy only warns."""
SECURITY = "team-pod-security"
SECURITY_LABELS = {"ai-on-aks/pins-memory": "true"}
ISOLATION = "team-isolation"


def policies(scheduler: str | None, gpus: int, of_node: Mapping[str, int], rdma_resource: str) -> dict[str, Any]:
    """Returns the specs of the policies of all teams by name.

    Args:
        scheduler: The only scheduler that may place pods on GPU nodes, or None.
        gpus: The number of GPUs in all quotas.
        of_node: By resource, the largest number of devices on one node.
        rdma_resource: The resource of InfiniBand HCAs.
    """
    queue = {"label": QUEUE_LABEL, "queue": LOCAL_QUEUE}
    classes = {"classes": ["", *CLASSES], "classNames": ", ".join(CLASSES)}
    pods = _policy(PODS, **queue, **classes, runtime=NVIDIA_RUNTIME, scheduler=scheduler)
    if not scheduler:
        pods["validations"].pop()  # the last one requires the scheduler
    hopeless = _policy(
        HOPELESS,
        **queue,
        allGpus=gpus,
        gpu=GPU_RESOURCE,
        nodeGpus=of_node[GPU_RESOURCE],
        rdma=rdma_resource,
        nodeHcas=of_node[rdma_resource],
    )
    return {QUEUES: _policy(QUEUES, **queue), PODS: pods, SERVICES: _policy(SERVICES), HOPELESS: hopeless}


def security_policy() -> dict[str, Any]:
    return _policy(SECURITY)


def isolation(pod_range: str) -> dict[str, Any]:
    return _policy(ISOLATION, kuberay=MLBATCH_NAMESPACE, monitoring=MONITORING_NAMESPACE, podRange=pod_range)


def binding(policy: str) -> dict[str, Any]:
    labels = SECURITY_LABELS if policy == SECURITY else TEAM_LABELS
    return policy_binding(policy, labels, action="Warn" if policy == HOPELESS else "Deny")


def _policy(name: str, **values: object) -> dict[str, Any]:
    return filled(Path(__file__).parent / "policies" / f"{name}.yaml", **values)
