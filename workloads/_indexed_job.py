"""Indexed Jobs of a gang: one pod on each of some whole nodes, all of them at once."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.context import WorkloadContext
from workloads._gang import gang, in_gang
from workloads._pods import NOT_AWAITED, Manifest

JOB_LABEL = "batch.kubernetes.io/job-name"
"""Kubernetes' own, on the pods of a Job."""
IGNORE_DISRUPTIONS: Manifest = {
    "action": "Ignore",
    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
}
"""Rule of a Job's podFailurePolicy: a node that goes away is no failure of the job."""


def indexed_job_spec(name: str, nodes: int, template: Manifest, **more: Any) -> Manifest:
    """The spec of a Job with `nodes` pods of a gang that `indexed_job` makes.

    The gang is explicit: Volcano 1.10 gives a Job's pods one of a single member, and reads no annotation for its size;
    Coscheduling knows no other. Only pods that run together are sure to be on different nodes.
    """
    pods = in_gang(name, template)
    return {"completionMode": "Indexed", "completions": nodes, "parallelism": nodes, "template": pods, **more}


def indexed_job(name: str, spec: Manifest, context: WorkloadContext, depends_on: list[pulumi.Resource]) -> None:
    """The Job and its gang."""
    group = gang(name, name=name, pods=spec["completions"], template=spec["template"], context=context)
    kubernetes.batch.v1.Job(
        name,
        metadata={"name": name, "namespace": context.namespace, "annotations": NOT_AWAITED},
        spec=spec,
        opts=context.job([group, *depends_on]),
    )
