"""Waiting for a custom resource to be ready, apart from creating it.

An operator's policy exists long before its drivers are installed, and much can be done meanwhile. So its creation is
one resource and its readiness another, on which only jobs depend: a patch that sets nothing but the annotation by which
Pulumi's Kubernetes provider waits (its await logic takes `pulumi.com/waitFor` of patches as of any other object). It
serves as well for a policy that a chart makes.
"""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as kubernetes

from components._base import Component

# OFED takes up to 12 minutes to compile and the GPU driver up to 15 to install, both after images of several GB.
_TIMEOUT = "45m"


@dataclass(frozen=True)
class CustomResourceName:
    """Which object."""

    api_version: str
    kind: str
    name: str


def once_ready(
    target: CustomResourceName, *, parent: Component, depends_on: list[pulumi.Resource]
) -> kubernetes.apiextensions.CustomResourcePatch:
    """A resource that is done once the target's `.status.state` is `ready`."""
    return kubernetes.apiextensions.CustomResourcePatch(
        f"{target.name}-ready",
        api_version=target.api_version,
        kind=target.kind,
        metadata={
            "name": target.name,
            "annotations": {"pulumi.com/waitFor": "jsonpath={.status.state}=ready"},
        },
        opts=parent.child(
            depends_on=depends_on, custom_timeouts=pulumi.CustomTimeouts(create=_TIMEOUT, update=_TIMEOUT)
        ),
    )
