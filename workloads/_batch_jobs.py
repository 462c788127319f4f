"""Indexed Jobs whose indexes need not run together: what they do about failures, evictions and the end. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pulumi_kubernetes as kubernetes

from components.context import WorkloadContext
from workloads._indexed_job import IGNORE_DISRUPTIONS
from workloads._node_check import failure_rules
from workloads._pods import NOT_AWAITED, Manifest

HOPELESS = 64
"""Exit code of scripts for what another try would not mend."""


def batch_job_spec(
    template: Manifest, *, container: str, completions: int, parallelism: int, retries: int, **more: Any
) -> Manifest:
    """The spec of a Job: each index is tried again by itself, and a node that goes away is no failure of it.

    The rule for disruptions is the first: the others would count what an eviction ends with. Jobs and their pods stay
    until somebody takes them away, since they tell what became of each index.
    """
    exit_codes = {"containerName": container, "operator": "In", "values": [HOPELESS]}
    rules = [IGNORE_DISRUPTIONS, *failure_rules(template), {"action": "FailIndex", "onExitCodes": exit_codes}]
    return {
        "completionMode": "Indexed",
        "completions": completions,
        "parallelism": min(completions, parallelism),
        "backoffLimitPerIndex": retries,
        "podFailurePolicy": {"rules": rules},
        "template": template,
        **more,
    }


def batch_job(
    name: str, spec: Manifest, context: WorkloadContext, needs: Iterable[Any], labels: dict[str, str] | None = None
) -> None:
    """The Job."""
    metadata = {"name": name, "namespace": context.namespace, "annotations": NOT_AWAITED, "labels": labels or {}}
    kubernetes.batch.v1.Job(
        name,
        metadata=metadata,
        spec=spec,
        opts=context.job(needs),
    )
