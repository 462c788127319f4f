"""Indexed Jobs of a gang: one pod on each of some whole nodes, all of them at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import pulumi
import pulumi_kubernetes as kubernetes

from components.context import WorkloadContext
from config.facts.scheduling import COSCHEDULER, VOLCANO, VOLCANO_GROUP
from config.schema.overrides import merge
from workloads._pods import NOT_AWAITED, Manifest

JOB_LABEL = "batch.kubernetes.io/job-name"
"""Kubernetes' own, on the pods of a Job."""
IGNORE_DISRUPTIONS: Manifest = {
    "action": "Ignore",
    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
}
"""Rule of a Job's podFailurePolicy: a node that goes away is no failure of the job."""


@dataclass(frozen=True, kw_only=True)
class _Gangs:
    """How a scheduler knows which pods it places all together or not at all."""

    api_version: str
    """Of its PodGroup."""
    marks: Literal["annotations", "labels"]
    mark: str
    """Names the PodGroup on its pods."""
    more: Manifest = field(default_factory=dict)
    """Of the PodGroup's spec."""


_GANGS = {
    VOLCANO: _Gangs(
        api_version="scheduling.volcano.sh/v1beta1",
        marks="annotations",
        mark=VOLCANO_GROUP,
        more={"queue": "default"},
    ),
    COSCHEDULER: _Gangs(
        api_version="scheduling.x-k8s.io/v1alpha1", marks="labels", mark="scheduling.x-k8s.io/pod-group"
    ),
}


def indexed_job_spec(name: str, nodes: int, template: Manifest, **more: Any) -> Manifest:
    """The spec of a Job with `nodes` pods of a gang that `indexed_job` makes.

    The gang is explicit: Volcano 1.10 gives a Job's pods one of a single member, and reads no annotation for its size;
    Coscheduling knows no other. Only pods that run together are sure to be on different nodes.
    """
    gangs = _gangs(template)
    in_gang = merge(template, {"metadata": {gangs.marks: {gangs.mark: name}}})
    return {"completionMode": "Indexed", "completions": nodes, "parallelism": nodes, "template": in_gang, **more}


def indexed_job(name: str, spec: Manifest, context: WorkloadContext, depends_on: list[pulumi.Resource]) -> None:
    """The Job and its gang. Its spec cannot be changed: it is replaced, and deleted first because its name stays."""
    gangs = _gangs(spec["template"])
    group = kubernetes.apiextensions.CustomResource(
        name,
        api_version=gangs.api_version,
        kind="PodGroup",
        metadata={"name": name, "namespace": context.namespace},
        spec={"minMember": spec["completions"], **gangs.more},
        opts=context.child(depends_on=list(context.ready)),
    )
    kubernetes.batch.v1.Job(
        name,
        metadata={"name": name, "namespace": context.namespace, "annotations": NOT_AWAITED},
        spec=spec,
        opts=context.child(
            depends_on=[*context.ready, group, *depends_on],
            replace_on_changes=["spec"],
            delete_before_replace=True,
        ),
    )


def _gangs(template: Manifest) -> _Gangs:
    return _GANGS[template["spec"]["schedulerName"]]
