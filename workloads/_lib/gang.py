"""Gangs: pods that a scheduler places all together, or not at all."""

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
    """How a scheduler knows which pods belong together."""

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


def in_gang(name: str, template: Manifest) -> Manifest:
    """A pod template whose pods are of the gang of that name."""
    gangs = _GANGS[template["spec"]["schedulerName"]]
    found: Manifest = merge(template, {"metadata": {gangs.marks: {gangs.mark: name}}})
    return found


def gang(
    resource: str, *, name: str, pods: int, template: Manifest, context: WorkloadContext
) -> kubernetes.apiextensions.CustomResource:
    """The PodGroup; `resource` is its name in the stack, `template` that of some of its pods."""
    gangs = _GANGS[template["spec"]["schedulerName"]]
    return kubernetes.apiextensions.CustomResource(
        resource,
        api_version=gangs.api_version,
        kind="PodGroup",
        metadata={"name": name, "namespace": context.namespace},
        spec={"minMember": pods, **gangs.more},
        opts=context.child(depends_on=list[pulumi.Resource](context.ready)),
    )
