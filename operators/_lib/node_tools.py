"""DaemonSets with the images of `docker/`, which prepare and describe nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components._base import Component
from components.operators import InstallContext

Manifest = dict[str, Any]
UNPRIVILEGED = {"runAsNonRoot": True, "runAsUser": 65534, "runAsGroup": 65534}
CONFINED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


def daemon_set_spec(name: str, pod: Manifest) -> Manifest:
    """Returns a DaemonSet that rolls out a new version to a quarter of the nodes at a time."""
    labels = {"app.kubernetes.io/name": name}
    return {
        "selector": {"matchLabels": labels},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }


def daemon_set(
    name: str,
    context: InstallContext,
    pod: Mapping[str, Any],
    *,
    parent: Component,
    depends_on: Sequence[pulumi.Resource] = (),
) -> kubernetes.apps.v1.DaemonSet:
    return kubernetes.apps.v1.DaemonSet(
        name,
        metadata={
            "name": name,
            "namespace": context.namespace.metadata["name"],
            # The image is pushed after the registry exists (`make images`), so `pulumi up` must not wait for the pods.
            "annotations": {"pulumi.com/skipAwait": "true"},
        },
        spec=daemon_set_spec(name, dict(pod)),
        opts=parent.child(depends_on=[context.registry, *depends_on]),
    )
