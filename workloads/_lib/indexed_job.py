"""Builds Indexed Jobs: gangs with one pod on each of several whole nodes, or batches of independent pods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import pulumi
import pulumi_kubernetes as kubernetes

from components.context import WorkloadContext
from workloads._lib.gang import gang, in_gang
from workloads._lib.node_check import failure_rules
from workloads._lib.pods import NOT_AWAITED, Manifest

JOB_LABEL = "batch.kubernetes.io/job-name"
IGNORE_DISRUPTIONS: Manifest = {
    "action": "Ignore",
    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
}
"""Rule of a podFailurePolicy: lost nodes and evictions do not count as failures."""
HOPELESS = 64
"""Exit code of scripts for errors that a retry cannot fix."""


def failure_policy(container: str, template: Manifest, hopeless: Literal["FailJob", "FailIndex"]) -> Manifest:
    """Returns a podFailurePolicy that ignores lost or bad nodes, and does not retry errors that a retry cannot fix.

    The rule for disruptions is first, because the other rules would match the exit code of an evicted pod.
    """
    exit_codes = {"containerName": container, "operator": "In", "values": [HOPELESS]}
    return {"rules": [IGNORE_DISRUPTIONS, *failure_rules(template), {"action": hopeless, "onExitCodes": exit_codes}]}


def indexed_job_spec(name: str, nodes: int, template: Manifest, **more: Any) -> Manifest:
    """Returns the spec of a Job with `nodes` pods in the gang that `indexed_job` creates.

    Pods of a gang run at the same time, and so on different nodes. The gang is explicit: otherwise Volcano 1.10 creates
    a gang of one for each pod of a Job, and Coscheduling needs a PodGroup.
    """
    pods = in_gang(name, template)
    return {"completionMode": "Indexed", "completions": nodes, "parallelism": nodes, "template": pods, **more}


def indexed_job(name: str, spec: Manifest, context: WorkloadContext, depends_on: list[pulumi.Resource]) -> None:
    group = gang(name, name=name, pods=spec["completions"], template=spec["template"], context=context)
    kubernetes.batch.v1.Job(
        name,
        metadata={"name": name, "namespace": context.namespace, "annotations": NOT_AWAITED},
        spec=spec,
        opts=context.job([group, *depends_on]),
    )


def batch_job_spec(
    template: Manifest, *, container: str, completions: int, parallelism: int, retries: int, **more: Any
) -> Manifest:
    """Returns the spec of a Job without a gang. Kubernetes retries each index separately.

    The Job and its pods stay until a user deletes them, because they show the result of each index.
    """
    return {
        "completionMode": "Indexed",
        "completions": completions,
        "parallelism": min(completions, parallelism),
        "backoffLimitPerIndex": retries,
        "podFailurePolicy": failure_policy(container, template, "FailIndex"),
        "template": template,
        **more,
    }


def batch_job(
    name: str, spec: Manifest, context: WorkloadContext, needs: Iterable[Any], labels: dict[str, str] | None = None
) -> None:
    metadata = {"name": name, "namespace": context.namespace, "annotations": NOT_AWAITED, "labels": labels or {}}
    kubernetes.batch.v1.Job(name, metadata=metadata, spec=spec, opts=context.job(needs))
