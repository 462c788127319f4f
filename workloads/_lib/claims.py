"""Claims that keep users' files when the workload is removed or its stack is destroyed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.context import WorkloadContext
from config.problems.fixes import Path, set_command
from k8s.quantities import count
from workloads._lib.pods import NOT_AWAITED

_FORCED = {"pulumi.com/patchForce": "true"}
"""Annotation that takes over the claim's fields from an earlier deployment, or from another stack of the team."""


def kept_claim(
    resource: str,
    name: str,
    class_name: pulumi.Input[str],
    gib: int,
    context: WorkloadContext,
    *,
    awaited: bool,
    size: Path = (),
    after: Sequence[pulumi.Resource] = (),
) -> kubernetes.core.v1.PersistentVolumeClaimPatch:
    """Creates the claim `name`, or adopts an existing one. `resource` is its Pulumi name.

    A Patch resource creates a missing object and updates an existing one (pulumi-kubernetes, await.go, Creation). With
    `retain_on_delete`, Pulumi removes the claim from its state, not from the cluster.

    `size` is the path of the setting for `gib`, if any. If `awaited`, the update waits for the volume. That needs the
    right to read storage classes, which members of teams do not have.
    """
    hooks = pulumi.ResourceHookBinding(before_update=[shrinking_warning(resource, size)])
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
        opts=context.child(depends_on=list(after), retain_on_delete=True, hooks=hooks),
    )


def shrinking_warning(resource: str, size: Path) -> pulumi.ResourceHook:
    """Returns a hook that warns if the requested size shrinks, which the API server would reject."""

    def warn(update: pulumi.ResourceHookArgs) -> None:
        had, wanted = _gib(update.old_inputs), _gib(update.new_inputs)
        if wanted < had:
            keep = set_command(size, had).text(pulumi.get_stack()) if size else f"request {had} GiB again"
            what = f"claim {update.id} has {had} GiB, but the stack requests {wanted} GiB: a claim can grow, not shrink"
            pulumi.log.warn(f"{what}\n    allowed: {had} GiB or more\n    fix:     {keep}")

    return pulumi.ResourceHook(f"size of the claim {resource}", warn, pulumi.ResourceHookOptions(on_dry_run=True))


def _gib(inputs: Mapping[str, Any] | None) -> int:
    """Returns the requested size in GiB. A refresh may store another unit, such as 1Ti for 1024Gi."""
    requests = ((inputs or {}).get("spec") or {}).get("resources", {}).get("requests", {})
    return count(requests.get("storage")) // 2**30
