"""Jobs that check a training's data before the training holds GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.context import WorkloadContext
from workloads._lib.indexed_job import IGNORE_DISRUPTIONS
from workloads._lib.pods import Manifest, on_pools
from workloads._lib.results import reading_job
from workloads._lib.team_training import TrainingRun

TIMEOUT = "30m"
"""The time that `pulumi up` waits for a check: for its queue, a new node, and its image."""
_AGAIN = {"pulumi.com/replaceUnready": "true"}
"""Annotation that makes the next `pulumi up` re-create a failed Job instead of waiting for it (pulumi-kubernetes,
provider/pkg/provider/provider.go, Diff).
"""

SHOWS_LOG: Manifest = {"terminationMessagePolicy": "FallbackToLogsOnError"}
"""Container field that adds the container's log to Pulumi's error."""
RULES: Manifest = {"rules": [IGNORE_DISRUPTIONS]}
"""The podFailurePolicy of a check. It has no rules for exit codes: Pulumi recognizes only failures with the reason
BackoffLimitExceeded or DeadlineExceeded (pulumi-kubernetes, provider/pkg/await/checker/job/check.go).
"""
_LIMITS = {"memory": "1Gi"}


def manifest(run: TrainingRun[Any], words: Sequence[str]) -> Manifest:
    if run.data is None:
        raise ValueError("a training without data has nothing to check")
    container = {"name": "check", "image": run.image, "command": list(words), **SHOWS_LOG}
    job = reading_job(f"{run.name}-data", run.pool.scheduler, run.data, container, _LIMITS, podFailurePolicy=RULES)
    job["spec"]["template"]["metadata"] = {"annotations": dict(run.data.annotations)}
    job["spec"]["template"]["spec"]["affinity"] = on_pools(run.pool)
    return job


def check_data(
    workload: str, run: TrainingRun[Any], words: Sequence[str], context: WorkloadContext
) -> list[pulumi.Resource]:
    if run.data is None:
        return []
    job = manifest(run, words)
    return [check_job(f"{workload}-data", job["metadata"], job["spec"], context)]


def check_job(
    name: str, metadata: Manifest, spec: Manifest, context: WorkloadContext, *needed: pulumi.Resource
) -> pulumi.Resource:
    job: pulumi.Resource = kubernetes.batch.v1.Job(
        name,
        metadata={**metadata, "namespace": context.namespace, "annotations": _AGAIN},
        spec=spec,
        opts=context.job(needed, custom_timeouts=pulumi.CustomTimeouts(create=TIMEOUT)),
    )
    return job
