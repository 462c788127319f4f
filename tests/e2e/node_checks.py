from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from k8s.objects import Object
from tests.support.manifests import manifest
from tests.support.world import Stack, eventually, gpu_nodes, names

CHECK, NAMESPACE = "health-check", "ai"
CRON = f"idle-{CHECK}"
LASTING: dict[str, Any] = {
    "idleChecks": True,
    "podOverrides": {"spec": {"containers": [{"name": CHECK, "command": ["sleep", "600"]}]}},
}
"""A health check with pods that run for ten minutes, like measurements."""


@contextlib.contextmanager
def a_slow_link(stack: Stack) -> Iterator[str]:
    """Device plugins do not detect this fault."""
    name = names(gpu_nodes(stack.kube))[0]
    stack.world.simulator("fault", "link", "--node", name, "--device", "mlx5_2", "--gbps", "100")
    try:
        yield name
    finally:
        stack.world.simulator("heal")


@contextlib.contextmanager
def only(stack: Stack, name: str) -> Iterator[None]:
    others = [each for each in names(gpu_nodes(stack.kube)) if each != name]

    def cordon(*, unschedulable: bool) -> None:
        for each in others:
            stack.kube.patch("v1", "Node", each, None, {"spec": {"unschedulable": unschedulable}})

    cordon(unschedulable=True)
    try:
        yield
    finally:
        cordon(unschedulable=False)


def node(stack: Stack, name: str) -> Object:
    return stack.kube.get("v1", "Node", name)


def taint(stack: Stack, name: str) -> list[str]:
    return sorted(each["effect"] for each in node(stack, name)["spec"].get("taints", []) if each["key"] == "aznhc")


def node_verdict(stack: Stack, name: str) -> str:
    return str(node(stack, name)["metadata"]["annotations"].get("aznhc-verdict", ""))


def run_now(stack: Stack, cron_job: str, namespace: str, *, ends: bool = True) -> None:
    """Starts a job of a CronJob. If it `ends`, waits until it has succeeded.

    Suspends the CronJob, a field that the program does not set, so that no other jobs start.
    """
    cron = stack.kube.patch("batch/v1", "CronJob", cron_job, namespace, {"spec": {"suspend": True}})
    name = f"now-{time.monotonic_ns()}"
    stack.kube.create(manifest("batch/v1", "Job", name, namespace, spec=cron["spec"]["jobTemplate"]["spec"]))

    def done() -> bool:
        return bool(stack.kube.get("batch/v1", "Job", name, namespace)["status"].get("succeeded") == 1)

    if ends:
        eventually(done, f"a job of {cron_job} succeeds", 120)


def idle_pods(stack: Stack) -> list[Object]:
    return stack.kube.list("v1", "Pod", NAMESPACE, labels=f"app.kubernetes.io/name={CRON}")


def ready_for_idle_checks(stack: Stack, **settings: Any) -> None:
    """Deploys the CronJob, deletes its workload's Job, and removes nodes' times of the last check."""
    stack.set(workloads=CHECK, workloadOptions={CHECK: LASTING}, **settings)
    stack.up()
    stack.kube.delete("batch/v1", "Job", CHECK, NAMESPACE)
    gone = f"batch.kubernetes.io/job-name={CHECK}"
    eventually(lambda: not stack.kube.list("v1", "Pod", NAMESPACE, labels=gone), "its pods have gone", 120)
    for name in names(gpu_nodes(stack.kube)):
        stack.kube.patch("v1", "Node", name, None, {"metadata": {"annotations": {"aznhc-checked": None}}})
