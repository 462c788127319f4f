"""Gangs: groups of pods that a scheduler places all together or not at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pulumi
import pulumi_kubernetes as kubernetes

from components.context import WorkloadContext
from config.data.scheduling import COSCHEDULER, VOLCANO, VOLCANO_GROUP
from config.schema.overrides import merge
from workloads._lib.pods import Manifest


@dataclass(frozen=True, kw_only=True)
class _Gangs:
    api_version: str
    marks: Literal["annotations", "labels"]
    mark: str
    """The annotation or label of pods that contains the name of their PodGroup."""
    more: Manifest = field(default_factory=dict)


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


def in_gang(name: str, template: Manifest) -> Manifest:
    gangs = _GANGS[template["spec"]["schedulerName"]]
    found: Manifest = merge(template, {"metadata": {gangs.marks: {gangs.mark: name}}})
    return found


def gang(
    resource: str, *, name: str, pods: int, template: Manifest, context: WorkloadContext
) -> kubernetes.apiextensions.CustomResource:
    gangs = _GANGS[template["spec"]["schedulerName"]]
    return kubernetes.apiextensions.CustomResource(
        resource,
        api_version=gangs.api_version,
        kind="PodGroup",
        metadata={"name": name, "namespace": context.namespace},
        spec={"minMember": pods, **gangs.more},
        opts=context.child(depends_on=list[pulumi.Resource](context.ready)),
    )
