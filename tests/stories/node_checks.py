"""Checks of nodes, in stories: rounds of CronJobs now and not in minutes, and checks of idle nodes that last."""

from __future__ import annotations

import time
from typing import Any

from diagnosis.cluster import Object
from tests.support.world import Stack, eventually, gpu_nodes, names

CHECK, NAMESPACE = "health-check", "ai"
CRON = f"idle-{CHECK}"
LASTING: dict[str, Any] = {
    "idleChecks": True,
    "podOverrides": {"spec": {"containers": [{"name": CHECK, "command": ["sleep", "600"]}]}},
}
"""Options of the health check by which its pods last, as those do that measure."""


def run_now(stack: Stack, cron_job: str, namespace: str) -> None:
    """A round of a CronJob, until it has succeeded."""
    cron = stack.kube.get("batch/v1", "CronJob", cron_job, namespace)
    name = f"now-{time.monotonic_ns()}"
    metadata = {"name": name, "namespace": namespace}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": cron["spec"]["jobTemplate"]["spec"]}
    stack.kube.create(job)

    def done() -> bool:
        return bool(stack.kube.get("batch/v1", "Job", name, namespace)["status"].get("succeeded") == 1)

    eventually(done, f"a round of {cron_job}", 120)


def idle_pods(stack: Stack) -> list[Object]:
    """Checks of idle nodes."""
    return stack.kube.list("v1", "Pod", NAMESPACE, labels=f"app.kubernetes.io/name={CRON}")


def ready_for_idle_checks(stack: Stack, **settings: Any) -> None:
    """The stack with the CronJob, and no node that has been checked. The Job beside it, which lasts too, goes."""
    stack.set(workloads=CHECK, workloadOptions={CHECK: LASTING}, **settings)
    stack.up()
    stack.kube.delete("batch/v1", "Job", CHECK, NAMESPACE)
    gone = f"batch.kubernetes.io/job-name={CHECK}"
    eventually(lambda: not stack.kube.list("v1", "Pod", NAMESPACE, labels=gone), "its pods have gone", 120)
    for name in names(gpu_nodes(stack.kube)):
        stack.kube.patch("v1", "Node", name, None, {"metadata": {"annotations": {"aznhc-checked": None}}})
