"""Nodes that are bad, and jobs that do not start there: told by the checks' own pods, with Volcano.

One stack of three nodes tells it, in the order of the file; each test leaves the program as it found it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from config.data.content_tags import content_tag
from config.data.scheduling import BAD_NODE, GPU_RESOURCE
from k8s.objects import Object
from tests.e2e.node_checks import (
    CRON,
    LASTING,
    a_slow_link,
    found,
    idle_pods,
    node,
    only,
    ready_for_idle_checks,
    run_now,
    taint,
)
from tests.support.world import Stack, ended, eventually, gpu_nodes, log, names

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.timeout(1200)]
JOB, CHECK, BATCH, AI = "nccl-allreduce", "health-check", "gpu-batch", "ai"
OF_BATCH = f"batch.kubernetes.io/job-name={BATCH}"
LABEL, _, VALUE = BAD_NODE.partition("=")
FAILED = "VERDICT: FAIL check_hw_ib"


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    made = new_stack("node-health", workloads="", nodeCount=3)
    made.up()
    eventually(lambda: [gpus(node) for node in gpu_nodes(made.kube)] == [8] * 3, "GPUs", 300)
    return made


@pytest.fixture(scope="module")
def bad(stack: Stack) -> Iterator[str]:
    with a_slow_link(stack) as name:
        yield name


def gpus(node: Object) -> int:
    return int(node["status"]["allocatable"].get(GPU_RESOURCE, 0))


def workers(stack: Stack) -> list[Object]:
    pods = stack.kube.list("v1", "Pod", AI, labels=f"volcano.sh/job-name={JOB}")
    return [pod for pod in pods if "worker" in pod["metadata"]["name"]]


def checked(stack: Stack, name: str, **options: Any) -> str:
    """The verdict of a check of one node; the check is gone again afterwards."""
    stack.set(workloads=CHECK, workloadOptions={CHECK: {"nodeNames": [name], **options}})
    stack.up()

    def verdict() -> str:
        pods = stack.kube.list("v1", "Pod", AI, labels=f"batch.kubernetes.io/job-name={CHECK}")
        done = [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") in ("Succeeded", "Failed")]
        return log(stack.kube, done[0]).splitlines()[-1] if done else ""

    said: str = eventually(verdict, "the check ends", 180)
    stack.set(workloads="", workloadOptions={})
    stack.up()
    return said


def test_a_job_begins_anew_on_good_nodes_when_one_turns_out_to_be_bad(stack: Stack, bad: str) -> None:
    *_, spare = names(gpu_nodes(stack.kube))
    stack.kube.patch("v1", "Node", spare, None, {"spec": {"unschedulable": True}})  # so that the bad one is taken
    stack.set(workloads=JOB, workloadOptions={JOB: {"numNodes": 2, "nodeCheck": "light"}})
    stack.up()
    eventually(lambda: taint(stack, bad) == ["NoSchedule"], "the bad node is tainted", 180)
    eventually(lambda: found(stack, bad).startswith(FAILED), "with its reason", 60)
    stack.kube.patch("v1", "Node", spare, None, {"spec": {"unschedulable": False}})
    assert ended(stack.kube) == "Completed"
    assert "VERDICT: PASS" in log(stack.kube)
    assert bad not in {pod["spec"]["nodeName"] for pod in workers(stack)}
    stack.set(workloads="", workloadOptions={})
    stack.up()


def test_unknown_taints_nothing(stack: Stack, bad: str) -> None:
    """The node's log cannot be read, of which two checks know nothing."""
    _, good, _ = names(gpu_nodes(stack.kube))
    container = {"name": CHECK, "env": [{"name": "KERNEL_LOGS", "value": "/nowhere"}]}
    said = checked(stack, good, podOverrides={"spec": {"containers": [container]}})
    assert said.startswith("VERDICT: UNKNOWN ")
    assert taint(stack, good) == []
    assert found(stack, good) == said


def test_jobs_get_their_time_and_then_have_to_go(stack: Stack, bad: str) -> None:
    run_now(stack, "node-health", "node-tools")
    assert taint(stack, bad) == ["NoSchedule"]
    assert "aznhc-failed" in node(stack, bad)["metadata"]["annotations"]
    stack.set(operators={"nodeHealth": {"graceMinutes": 0}})
    stack.up()
    run_now(stack, "node-health", "node-tools")
    assert node(stack, bad)["metadata"]["labels"][LABEL] == VALUE
    assert taint(stack, bad) == ["NoSchedule"]  # AppWrapper has a round to move its jobs
    run_now(stack, "node-health", "node-tools")
    assert taint(stack, bad) == ["NoExecute"]


def test_drivers_and_node_tools_bear_it(stack: Stack, bad: str) -> None:
    pods = stack.kube.list("v1", "Pod")
    there = [pod for pod in pods if pod["spec"].get("nodeName") == bad and not pod["metadata"].get("deletionTimestamp")]
    spaces = {pod["metadata"]["namespace"] for pod in there}
    assert {"nvidia-operator", "node-tools"} <= spaces
    assert gpus(node(stack, bad)) == 8


def test_healed_it_passes_and_everything_of_it_is_gone(stack: Stack, bad: str) -> None:
    stack.world.simulator("heal")
    assert checked(stack, bad).startswith("VERDICT: PASS")
    assert taint(stack, bad) == []
    run_now(stack, "node-health", "node-tools")
    after = node(stack, bad)["metadata"]
    assert LABEL not in after["labels"]
    assert "aznhc-failed" not in after["annotations"]


@pytest.mark.long
def test_an_indexed_job_counts_no_failure_on_a_bad_node_and_goes_on_elsewhere(stack: Stack, bad: str) -> None:
    stack.world.simulator("fault", "link", "--node", bad, "--device", "mlx5_5", "--gbps", "100")
    with only(stack, bad):
        stack.set(workloads=BATCH, workloadOptions={BATCH: {"count": 1, "gpuSeconds": 1, "nodeCheck": "light"}})
        stack.up()
        eventually(lambda: taint(stack, bad) == ["NoSchedule"], "the bad node is tainted", 180)

    def status() -> Object:
        found: Object = stack.kube.get("batch/v1", "Job", BATCH, AI)["status"]
        return found

    eventually(lambda: status().get("succeeded") == 1, "it runs elsewhere", 180)
    assert status().get("failed", 0) == 0
    (ran,) = [pod for pod in stack.kube.list("v1", "Pod", AI, labels=OF_BATCH) if pod["status"]["phase"] == "Succeeded"]
    assert ran["spec"]["nodeName"] != bad
    stack.world.simulator("heal")
    assert checked(stack, bad).startswith("VERDICT: PASS")


@pytest.mark.long
def test_a_node_that_lacks_devices_is_checked_and_its_check_says_what_is_missing(stack: Stack) -> None:
    """No pod that takes all devices can be placed there."""
    broken = names(gpu_nodes(stack.kube))[1]
    stack.world.simulator("fault", "gpu", "--node", broken, "--device", "3")
    stack.world.simulator("fault", "hca", "--node", broken, "--device", "mlx5_2")
    eventually(lambda: gpus(node(stack, broken)) == 7, "the GPU is not offered", 60)
    stack.set(workloads=CHECK, workloadOptions={CHECK: {"nodeNames": [broken]}})
    stack.up()
    eventually(lambda: taint(stack, broken) == ["NoSchedule"], "the node is tainted", 240)
    lacking = "VERDICT: FAIL the node offers 7 of 8 nvidia.com/gpu, 7 of 8 nvidia.com/mlnxnics"
    eventually(lambda: found(stack, broken).startswith(lacking), "with what is missing", 60)
    results = node(stack, broken)["metadata"]["annotations"]["aznhc-results"]
    assert "No IB port mlx5_2:1 is ACTIVE" in results
    assert "GPU has fallen off the bus" in results
    stack.world.simulator("heal")
    passed = lambda: found(stack, broken).startswith("VERDICT: PASS")  # noqa: E731
    eventually(passed, "the check of the whole node begins then", 240)
    assert taint(stack, broken) == []
    stack.set(workloads="", workloadOptions={})
    stack.up()


def test_a_pod_that_would_taint_another_node_is_refused(stack: Stack, bad: str) -> None:
    mine, other, _ = names(gpu_nodes(stack.kube))
    command = ["kubectl", "taint", "nodes", other, "aznhc=failed:NoExecute"]
    registry = stack.kube.get("batch/v1", "CronJob", "node-health", "node-tools")["spec"]["jobTemplate"]["spec"][
        "template"
    ]
    host = registry["spec"]["containers"][0]["image"].partition("/")[0]
    image = f"{host}/aksnhc:{content_tag('aksnhc')}"
    spec = {
        "nodeName": mine,
        "serviceAccountName": "aksnhc-sa",
        "restartPolicy": "Never",
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": image, "command": command}],
    }
    metadata = {"name": "stranger", "namespace": AI}
    stack.kube.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    ends = lambda: stack.kube.get("v1", "Pod", "stranger", AI)["status"].get("phase") in ("Failed", "Succeeded")  # noqa: E731
    eventually(ends, "it ends", 120)
    said = log(stack.kube, "stranger")
    assert f"a check may change the node that it runs on, and no other: its pod is on {mine}" in said
    assert taint(stack, other) == []


def test_an_idle_node_is_checked_and_gives_way_to_any_job_at_once(stack: Stack) -> None:
    ready_for_idle_checks(stack, operators={"volcano": {"preemption": True}})
    run_now(stack, CRON, AI, ends=False)
    eventually(lambda: [pod["status"].get("phase") for pod in idle_pods(stack)] == ["Running"], "it is checked", 120)
    (check,) = names(idle_pods(stack))
    stack.set(workloads=f"{CHECK},{JOB}", workloadOptions={CHECK: LASTING, JOB: {"numNodes": 3}})
    stack.up()
    assert ended(stack.kube) == "Completed"  # on all three
    assert check not in names(idle_pods(stack))
