"""Claims that keep users' files when the workload is removed or its stack is destroyed."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as kubernetes

from components.context import WorkloadContext
from workloads._pods import NOT_AWAITED

_FORCED = {"pulumi.com/patchForce": "true"}
"""An earlier run of this stack, or another stack of the team, may own the claim's fields."""


def kept_claim(
    resource: str,
    name: str,
    class_name: pulumi.Input[str],
    gib: int,
    context: WorkloadContext,
    *,
    awaited: bool,
    after: Sequence[pulumi.Resource] = (),
) -> kubernetes.core.v1.PersistentVolumeClaimPatch:
    """Creates the claim `name`, or takes over the one that an earlier run has left.

    A Patch resource creates an object that does not exist and updates one that does (pulumi-kubernetes, await.go,
    Creation). With `retain_on_delete` Pulumi removes the claim from its state and leaves it in the cluster.

    `resource` is its name in the stack. The update waits for the volume if `awaited`: members of teams may not read
    storage classes, which that needs.
    """
    return kubernetes.core.v1.PersistentVolumeClaimPatch(
        resource,
        metadata={
            "name": name,
            "namespace": context.namespace,
            "annotations": {**_FORCED, **({} if awaited else NOT_AWAITED)},
        },
        spec={
            "accessModes": ["ReadWriteMany"],
            "storageClassName": class_name,
            "resources": {"requests": {"storage": f"{gib}Gi"}},
        },
        # A state of an earlier version has the claim without retention: it must not be deleted as another resource.
        opts=context.child(
            other_type="kubernetes:core/v1:PersistentVolumeClaim", depends_on=list(after), retain_on_delete=True
        ),
    )
