"""Creates jobs of teams, with or without an AppWrapper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pulumi
import pulumi_kubernetes as kubernetes

from components.context import WorkloadContext
from config.data.scheduling import WRAPPER_ANNOTATION
from workloads._lib.pods import NOT_AWAITED, Manifest
from workloads._lib.team import QUEUED

API, KIND = "workload.codeflare.dev/v1beta2", "AppWrapper"


def app_wrapper(name: str, job: Manifest) -> Manifest:
    return {"components": [{"template": {**job, "metadata": {"name": name}}}]}


def team_job(
    resource: str,
    name: str,
    job: Manifest,
    context: WorkloadContext,
    needed: Iterable[pulumi.Resource],
    *,
    wrapper: Mapping[str, str] | None,
) -> None:
    """Creates the job in an AppWrapper with the retry options `wrapper`, or without one if `wrapper` is None.

    A change of the spec replaces the job. Both have the same name, so Pulumi first deletes the old pods and job.
    """
    types = {True: f"kubernetes:{API}:{KIND}", False: f"kubernetes:{job['apiVersion']}:{job['kind']}"}
    wrapped = wrapper is not None
    options = {f"{WRAPPER_ANNOTATION}/{key}": value for key, value in (wrapper or {}).items()}
    kubernetes.apiextensions.CustomResource(
        resource,
        api_version=API if wrapped else job["apiVersion"],
        kind=KIND if wrapped else job["kind"],
        metadata={
            "name": name,
            "namespace": context.namespace,
            "labels": QUEUED,
            "annotations": options if wrapped else NOT_AWAITED,
        },
        spec=app_wrapper(name, job) if wrapped else job["spec"],
        opts=context.child(
            other_type=types[not wrapped],
            depends_on=[*context.ready, *needed],
            replace_on_changes=["spec"],
            delete_before_replace=True,
        ),
    )
