"""Namespaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pulumi
import pulumi_kubernetes as kubernetes

from components._base import Component

Level = Literal["baseline", "privileged"]


def namespace(
    name: str,
    level: Level,
    *,
    parent: Component,
    hooks: pulumi.ResourceHookBinding | None,
    labels: Mapping[str, str] | None = None,
    depends_on: Sequence[pulumi.Resource] = (),
    keeps_files: bool = False,
) -> kubernetes.core.v1.Namespace | kubernetes.core.v1.NamespacePatch:
    """Creates the namespace `name`, which enforces the Pod Security `level`.

    If `keeps_files`, the namespace and its claims stay when the stack no longer declares them. If the stack declares
    the namespace again, a Patch resource adopts it.
    """
    metadata: dict[str, Any] = {
        "name": name,
        "labels": {"pod-security.kubernetes.io/enforce": level, **(labels or {})},
    }
    opts = parent.child(hooks=hooks, depends_on=depends_on)
    if not keeps_files:
        return kubernetes.core.v1.Namespace(f"namespace-{name}", metadata=metadata, opts=opts)
    kept = pulumi.ResourceOptions(retain_on_delete=True, aliases=[pulumi.Alias(type_="kubernetes:core/v1:Namespace")])
    return kubernetes.core.v1.NamespacePatch(
        f"namespace-{name}",
        metadata={**metadata, "annotations": {"pulumi.com/patchForce": "true"}},
        opts=pulumi.ResourceOptions.merge(opts, kept),
    )
