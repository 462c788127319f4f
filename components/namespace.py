"""Namespaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import pulumi
import pulumi_kubernetes as kubernetes

from components._base import Component

Level = Literal["baseline", "privileged"]
"""What pods of a namespace may do, as Kubernetes' pod-security standards have it."""


def namespace(
    name: str,
    level: Level,
    *,
    parent: Component,
    hooks: pulumi.ResourceHookBinding | None,
    labels: Mapping[str, str] | None = None,
    depends_on: Sequence[pulumi.Resource] = (),
) -> kubernetes.core.v1.Namespace:
    """A namespace of that very name, whose pods may do what the pod-security `level` allows."""
    return kubernetes.core.v1.Namespace(
        f"namespace-{name}",
        metadata={"name": name, "labels": {"pod-security.kubernetes.io/enforce": level, **(labels or {})}},
        opts=parent.child(hooks=hooks, depends_on=depends_on),
    )
