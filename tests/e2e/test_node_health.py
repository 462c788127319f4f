"""The stack has Volcano; test_node_health_queued.py's has Kueue. Each test restores the program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from config.data.scheduling import BAD_NODE
from k8s.objects import Object
from tests.e2e.node_checks import (
    CRON,
    LASTING,
    a_slow_link,
    idle_pods,
    node,
    node_verdict,
    only,
    ready_for_idle_checks,
    run_now,
    taint,
)
from tests.e2e.policies import offers
from tests.e2e.team_jobs import shared_stack
from tests.support.world import Stack, eventually, gpu_nodes, log, names, wait_for_end

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.timeout(1200)]
JOB, CHECK, BATCH, AI = "nccl-allreduce", "health-check", "gpu-batch", "ai"
OF_BATCH = f"batch.kubernetes.io/job-name={BATCH}"
LABEL, _, VALUE = BAD_NODE.partition("=")
FAILED = "VERDICT: FAIL check_hw_ib"


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    return shared_stack(new_stack, "node-health", nodes=3)


@pytest.fixture(scope="module")
def bad(stack: Stack) -> Iterator[str]:
    with a_slow_link(stack) as name:
        yield name


def workers(stack: Stack) -> list[Object]:
    pods = stack.kube.list("v1", "Pod", AI, labels=f"volcano.sh/job-name={JOB}")
    return [pod for pod in pods if "worker" in pod["metadata"]["name"]]


def checked(stack: Stack, name: str, **options: Any) -> str:
    stack.set(workloads=CHECK, workloadOptions={CHECK: {"nodeNames": [name], **options}})
    stack.up()

    def verdict() -> str:
        pods = stack.kube.list("v1", "Pod", AI, labels=f"batch.kubernetes.io/job-name={CHECK}")
        done = [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") in ("Succeeded", "Failed")]
        return log(stack.kube, done[0]).splitlines()[-1] if done else ""

    found: str = eventually(verdict, "the check ends", 180)
    stack.set(workloads="", workloadOptions={})
    stack.up()
    return found


def test_a_job_restarts_on_good_nodes_when_a_check_finds_a_bad_one(stack: Stack, bad: str) -> None:
    *_, spare = names(gpu_nodes(stack.kube))
    stack.kube.patch("v1", "Node", spare, None, {"spec": {"unschedulable": True}})  # so that the job uses the bad one
    stack.set(workloads=JOB, workloadOptions={JOB: {"numNodes": 2, "nodeCheck": "light"}})
    stack.up()
    eventually(lambda: taint(stack, bad) == ["NoSchedule"], "the bad node is tainted", 180)
    eventually(lambda: node_verdict(stack, bad).startswith(FAILED), "it has its verdict", 60)
    stack.kube.patch("v1", "Node", spare, None, {"spec": {"unschedulable": False}})
    assert wait_for_end(stack.kube) == "Completed"
    assert "VERDICT: PASS" in log(stack.kube)
    assert bad not in {pod["spec"]["nodeName"] for pod in workers(stack)}
    stack.set(workloads="", workloadOptions={})
    stack.up()


def test_an_unknown_verdict_does_not_taint_the_node(stack: Stack, bad: str) -> None:
    """Two checks return UNKNOWN because they cannot read the node's log."""
    _, good, _ = names(gpu_nodes(stack.kube))
    container = {"name": CHECK, "env": [{"name": "KERNEL_LOGS", "value": "/nowhere"}]}
    verdict = checked(stack, good, podOverrides={"spec": {"containers": [container]}})
    assert verdict.startswith("VERDICT: UNKNOWN ")
    assert taint(stack, good) == []
    assert node_verdict(stack, good) == verdict


def test_jobs_are_evicted_after_the_grace_period(stack: Stack, bad: str) -> None:
    run_now(stack, "node-health", "node-tools")
    assert taint(stack, bad) == ["NoSchedule"]
    assert "aznhc-failed" in node(stack, bad)["metadata"]["annotations"]
    stack.set(operators={"nodeHealth": {"graceMinutes": 0}})
    stack.up()
    run_now(stack, "node-health", "node-tools")
    assert node(stack, bad)["metadata"]["labels"][LABEL] == VALUE
    assert taint(stack, bad) == ["NoSchedule"]  # AppWrapper gets a period to move jobs
    run_now(stack, "node-health", "node-tools")
    assert taint(stack, bad) == ["NoExecute"]


def test_drivers_and_node_tools_tolerate_the_taint(stack: Stack, bad: str) -> None:
    pods = stack.kube.list("v1", "Pod")
    there = [pod for pod in pods if pod["spec"].get("nodeName") == bad and not pod["metadata"].get("deletionTimestamp")]
    spaces = {pod["metadata"]["namespace"] for pod in there}
    assert {"nvidia-operator", "node-tools"} <= spaces
    assert offers(node(stack, bad)) == 8


def test_a_repaired_node_passes_and_loses_taint_label_and_annotation(stack: Stack, bad: str) -> None:
    stack.world.simulator("heal")
    assert checked(stack, bad).startswith("VERDICT: PASS")
    assert taint(stack, bad) == []
    run_now(stack, "node-health", "node-tools")
    after = node(stack, bad)["metadata"]
    assert LABEL not in after["labels"]
    assert "aznhc-failed" not in after["annotations"]


@pytest.mark.long
def test_an_indexed_job_moves_off_a_bad_node_without_a_failure(stack: Stack, bad: str) -> None:
    stack.world.simulator("fault", "link", "--node", bad, "--device", "mlx5_5", "--gbps", "100")
    with only(stack, bad):
        stack.set(workloads=BATCH, workloadOptions={BATCH: {"count": 1, "gpuSeconds": 1, "nodeCheck": "light"}})
        stack.up()
        eventually(lambda: taint(stack, bad) == ["NoSchedule"], "the bad node is tainted", 180)

    def status() -> Object:
        found: Object = stack.kube.get("batch/v1", "Job", BATCH, AI)["status"]
        return found

    eventually(lambda: status().get("succeeded") == 1, "it completes on another node", 180)
    assert status().get("failed", 0) == 0
    (ran,) = [pod for pod in stack.kube.list("v1", "Pod", AI, labels=OF_BATCH) if pod["status"]["phase"] == "Succeeded"]
    assert ran["spec"]["nodeName"] != bad
    stack.world.simulator("heal")
    assert checked(stack, bad).startswith("VERDICT: PASS")


@pytest.mark.long
def test_the_check_of_a_node_without_some_devices_reports_them(stack: Stack) -> None:
    """The check cannot request all devices of such a node."""
    broken = names(gpu_nodes(stack.kube))[1]
    stack.world.simulator("fault", "gpu", "--node", broken, "--device", "3")
    stack.world.simulator("fault", "hca", "--node", broken, "--device", "mlx5_2")
    eventually(lambda: offers(node(stack, broken)) == 7, "the GPU is not offered", 60)
    stack.set(workloads=CHECK, workloadOptions={CHECK: {"nodeNames": [broken]}})
    stack.up()
    eventually(lambda: taint(stack, broken) == ["NoSchedule"], "the node is tainted", 240)
    lacking = "VERDICT: FAIL the node offers 7 of 8 nvidia.com/gpu, 7 of 8 nvidia.com/mlnxnics"
    eventually(lambda: node_verdict(stack, broken).startswith(lacking), "missing devices are reported", 60)
    results = node(stack, broken)["metadata"]["annotations"]["aznhc-results"]
    assert "No IB port mlx5_2:1 is ACTIVE" in results
    assert "GPU has fallen off the bus" in results
    stack.world.simulator("heal")
    eventually(lambda: node_verdict(stack, broken).startswith("VERDICT: PASS"), "the next check passes", 240)
    assert taint(stack, broken) == []
    stack.set(workloads="", workloadOptions={})
    stack.up()


def test_a_check_of_an_idle_node_yields_to_any_job(stack: Stack) -> None:
    ready_for_idle_checks(stack, operators={"volcano": {"preemption": True}})
    run_now(stack, CRON, AI, ends=False)
    eventually(lambda: [pod["status"].get("phase") for pod in idle_pods(stack)] == ["Running"], "the check runs", 120)
    (check,) = names(idle_pods(stack))
    stack.set(workloads=f"{CHECK},{JOB}", workloadOptions={CHECK: LASTING, JOB: {"numNodes": 3}})
    stack.up()
    assert wait_for_end(stack.kube) == "Completed"  # on all three nodes
    assert check not in names(idle_pods(stack))
