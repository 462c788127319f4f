"""Indexed Jobs: a gang of one pod on each of some whole nodes, or pods that need not run together."""

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
"""Kubernetes' own, on the pods of a Job."""
IGNORE_DISRUPTIONS: Manifest = {
    "action": "Ignore",
    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
}
"""Rule of a Job's podFailurePolicy: a node that goes away is no failure of the job."""
HOPELESS = 64
"""Exit code of scripts for what another try would not mend."""


def failure_policy(container: str, template: Manifest, hopeless: Literal["FailJob", "FailIndex"]) -> Manifest:
    """Nodes that go away or are bad are no failure of the job; what another try cannot mend ends it at once.

    The rule for disruptions is the first: the others would count what an eviction ends with.
    """
    exit_codes = {"containerName": container, "operator": "In", "values": [HOPELESS]}
    return {"rules": [IGNORE_DISRUPTIONS, *failure_rules(template), {"action": hopeless, "onExitCodes": exit_codes}]}


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


def batch_job_spec(
    template: Manifest, *, container: str, completions: int, parallelism: int, retries: int, **more: Any
) -> Manifest:
    """The spec of a Job without a gang: each index is tried again by itself.

    Jobs and their pods stay until somebody takes them away, since they tell what became of each index.
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
    """The Job without a gang."""
    metadata = {"name": name, "namespace": context.namespace, "annotations": NOT_AWAITED, "labels": labels or {}}
    kubernetes.batch.v1.Job(name, metadata=metadata, spec=spec, opts=context.job(needs))
