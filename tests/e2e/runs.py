from __future__ import annotations

from pathlib import Path

from simulator.command import jobs
from simulator.kubelet import placements
from tests.support.world import Stack, eventually

DONE = {
    "health-check": "Complete",
    "jupyterlab": "Available",
    "metaseq": "Completed",
    "nccl-allreduce": "Completed",
    "nccl-bisection": "Completed",
    "olmo": "Complete",
    "gpu-batch": "Complete",
    "resim": "Complete",
}
JOBS = {
    "health-check": "batch/v1",
    "metaseq": "batch.volcano.sh/v1alpha1",
    "nccl-allreduce": "batch.volcano.sh/v1alpha1",
    "nccl-bisection": "batch.volcano.sh/v1alpha1",
    "olmo": "batch/v1",
    "gpu-batch": "batch/v1",
    "resim": "batch/v1",
}
_NOTEBOOK = "app.kubernetes.io/name=jupyterlab"


def observed(stack: Stack, platform: Stack) -> dict[str, jobs.Workload]:
    with jobs.watching(platform.kube, _folder(platform), stack.workloads()) as look:
        return {workload.name: workload for workload in look()}


def wait_for_end(stack: Stack, platform: Stack) -> dict[str, jobs.Workload]:
    with jobs.watching(platform.kube, _folder(platform), stack.workloads()) as look:

        def all_done() -> dict[str, jobs.Workload]:
            found = {workload.name: workload for workload in look()}
            return found if all(each.failed or each.phase == DONE[each.name] for each in found.values()) else {}

        found: dict[str, jobs.Workload] = eventually(all_done, "all workloads are done", 400, every=0.1)
        return found


def check_all_pass(stack: Stack, platform: Stack) -> None:
    found = wait_for_end(stack, platform)
    assert {name: each.phase for name, each in found.items()} == {name: DONE[name] for name in found}
    for name in {"health-check", "nccl-allreduce", "nccl-bisection"} & set(found):
        check_verdicts(found[name])


def check_verdicts(workload: jobs.Workload) -> None:
    assert workload.report.verdicts, workload
    assert all(verdict.startswith("VERDICT: PASS") for verdict in workload.report.verdicts), workload


def run(platform: Stack, workload: str, namespace: str = "ai") -> str:
    """Returns the uid of a workload's job or the notebook's pod, new for each run."""
    if workload in JOBS:
        job = platform.kube.get(JOBS[workload], "Job", workload, namespace)
        return str(job["metadata"]["uid"])
    return ",".join(pod["metadata"]["uid"] for pod in platform.kube.list("v1", "Pod", namespace, labels=_NOTEBOOK))


def gpu_pod_nodes(platform: Stack, workload: str, namespace: str = "ai") -> list[str]:
    """Returns the nodes of the run's pods in order, without MPI jobs' masters in the system pool."""
    if workload not in JOBS:
        pods = platform.kube.list("v1", "Pod", namespace, labels=_NOTEBOOK)
        return sorted(pod["spec"].get("nodeName", "") for pod in pods)
    uid = run(platform, workload, namespace)
    pods = [pod for pod in placements.load(_folder(platform) / "placements.json") if pod["job_uid"] == uid]
    return sorted(pod["node"] for pod in pods if not pod["pod"].endswith("-mpimaster-0"))


def _folder(platform: Stack) -> Path:
    name = f"ai-on-aks-{platform.name}"
    return platform.world.home / "clusters" / f"{name}+{name}"
