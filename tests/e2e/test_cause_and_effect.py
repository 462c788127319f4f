"""Each test restores the program."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from k8s.objects import Object, holds
from simulator.kube.client import ApiError
from tests.e2e.mistakes import WITHOUT_GPU_TOLERATIONS, WITHOUT_PREFLIGHT, fixed_pool
from tests.e2e.policies import (
    CLUSTER_POLICY,
    bound_job,
    gang,
    is_completed,
    offered_gpus,
    offers,
    offers_gpus,
    placed,
    ready_status,
    tolerate,
    unready_pods,
    unschedulable_reason,
)
from tests.e2e.team_jobs import kubectl
from tests.support.sizes import H100
from tests.support.world import Stack, eventually, gpu_nodes, job_phase, log, names, wait_for_end

pytestmark = [pytest.mark.simulator, pytest.mark.charts]
JOB = "batch.volcano.sh/v1alpha1"
NVIDIA_DEFAULT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
FAILED = "Terminated"  # by the master's policy; Failed would mean that Volcano gave up


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Iterator[Stack]:
    causes = new_stack("causes")
    yield causes
    causes.alter("")
    causes.world.simulator("heal")


@pytest.fixture
def healed(stack: Stack) -> Iterator[Stack]:
    yield stack
    stack.world.simulator("heal")


def run_again(stack: Stack, iterations: int) -> str:
    stack.set(workloadOptions={"nccl-allreduce": {"iterations": iterations}})
    stack.up()
    return wait_for_end(stack.kube)


def reboot(stack: Stack, pod: Object) -> None:
    """Deletes a pod like a reboot. Its DaemonSet may have deleted it, because tolerations changed."""
    try:
        stack.kube.delete("v1", "Pod", pod["metadata"]["name"], pod["metadata"]["namespace"])
    except ApiError as error:
        if not error.not_found:
            raise


# -- missing -----------------------------------------------------------------------------------------------------------


def test_workers_without_the_toleration_keep_the_gang_pending(stack: Stack) -> None:
    stack.alter(WITHOUT_GPU_TOLERATIONS)
    stack.up()

    def why() -> str:
        return unschedulable_reason(stack, "nccl-allreduce", "ai")

    eventually(partial(offers_gpus, stack), "the nodes offer GPUs")
    eventually(lambda: "taint" in why(), "the gang waits because of the taint")
    assert "3 tasks in gang unschedulable" in why()
    assert placed(stack.kube, "ai", "nccl-allreduce") == []
    assert job_phase(stack.kube) == "Pending"
    report = stack.diagnose("nccl-allreduce")
    assert "waits: the scheduler reports: 0/" in report
    assert "waits: no toleration for taint sku=gpu:NoSchedule on nodes " in report


def test_device_plugins_without_the_toleration_leave_nodes_without_gpus(stack: Stack) -> None:
    tolerations = stack.kube.get(*CLUSTER_POLICY)["spec"]["daemonsets"]["tolerations"]
    tolerate(stack, [NVIDIA_DEFAULT])
    try:
        for pod in stack.kube.list("v1", "Pod", "nvidia-operator", labels="app=nvidia-device-plugin-daemonset"):
            reboot(stack, pod)
        eventually(lambda: not any(offered_gpus(stack)), "the nodes offer no GPUs")
        stack.kube.create(gang("hungry", 2))
        assert "gang unschedulable" in unschedulable_reason(stack, "hungry")
        # The operator rolls out DaemonSets one by one, so any may be the first without pods.
        cause = r"does not run: DaemonSet nvidia-[a-z-]+ has no toleration for taint sku=gpu:NoSchedule"
        assert re.search(cause, stack.diagnose("hungry", namespace="default"))
    finally:
        tolerate(stack, tolerations)
    eventually(partial(offers_gpus, stack), "the nodes offer GPUs again")
    eventually(partial(is_completed, stack, "hungry"), "the gang completes")


# -- broken ------------------------------------------------------------------------------------------------------------


def test_a_slow_link_fails_the_job_until_it_is_repaired(healed: Stack) -> None:
    healed.alter("")
    node = names(gpu_nodes(healed.kube))[0]
    healed.world.simulator("fault", "link", "--node", node, "--device", "mlx5_3", "--gbps", "100")
    assert run_again(healed, 19) == FAILED
    assert "VERDICT: FAIL bus bandwidth is below the floor" in log(healed.kube)
    healed.world.simulator("heal")
    assert run_again(healed, 20) == "Completed"


def test_a_gpu_off_the_bus_leaves_seven_and_the_node_rejects_pods_with_eight(healed: Stack) -> None:
    node = names(gpu_nodes(healed.kube))[1]

    def offered() -> int:
        return offers(healed.kube.get("v1", "Node", node))

    def rejections() -> list[str]:
        pods = healed.kube.list("v1", "Pod", "default", labels="batch.kubernetes.io/job-name=late")
        failed = [pod["status"] for pod in pods if pod["status"]["phase"] == "Failed"]
        return [f"{status['reason']}: {status['message']}" for status in failed]

    healed.world.simulator("fault", "gpu", "--node", node, "--device", "5")
    eventually(lambda: offered() == 7, "the node offers 7 GPUs")
    healed.kube.create(bound_job("late", node))
    unavailable = "requested number of devices unavailable for nvidia.com/gpu. Requested: 8, Available: 7"
    message = f"UnexpectedAdmissionError: Pod was rejected: Allocate failed due to {unavailable}, which is unexpected"
    assert message in eventually(rejections, "the node rejects the pod")
    healed.world.simulator("heal")
    eventually(lambda: offered() == 8, "the node offers 8 GPUs again")
    late = partial(healed.kube.get, "batch/v1", "Job", "late", "default")
    eventually(lambda: holds(late(), "Complete"), "another pod of the Job has run")


def test_a_failed_node_is_not_ready_and_recovers_with_its_pods(healed: Stack) -> None:
    scheduler = healed.kube.list("v1", "Pod", "volcano-system", labels="app=volcano-scheduler")[0]
    for node in (names(gpu_nodes(healed.kube))[0], scheduler["spec"]["nodeName"]):
        healed.world.simulator("fault", "node", "--node", node)
        eventually(partial(unready_pods, healed, node), f"pods of {node} are not ready")
        eventually(lambda: ready_status(healed, node) == "Unknown", f"{node} is reported Unknown")  # noqa: B023
        healed.world.simulator("heal")
        eventually(lambda: ready_status(healed, node) == "True", f"{node} is ready again")  # noqa: B023
        eventually(lambda: not unready_pods(healed, node), f"pods of {node} are ready again")  # noqa: B023


# -- gangs -------------------------------------------------------------------------------------------------------------


def test_a_gang_that_is_too_big_waits_and_does_not_block_another(stack: Stack) -> None:
    stack.kube.create(gang("big", 3))
    assert "gang unschedulable" in unschedulable_reason(stack, "big")
    stack.kube.create(gang("fits", 2))
    eventually(partial(is_completed, stack, "fits"), "the fitting gang completes")
    assert job_phase(stack.kube, "big", "default") == "Pending"
    assert placed(stack.kube, "default", "big") == []
    wanted = "3 pods request 8 nvidia.com/gpu each, and only 2 fit on the nodes that they may use"
    assert wanted in stack.diagnose("big", namespace="default")
    stack.kube.delete(JOB, "Job", "big", "default")


def test_diagnosis_reports_the_client_that_cordoned_a_node(stack: Stack) -> None:
    node = names(gpu_nodes(stack.kube))[0]
    kubectl(stack, "cordon", node)
    try:
        cause = rf"waits: cordoned by kubectl: it takes no new pods on node {node} since \d\d:\d\d UTC"
        eventually(lambda: re.search(f"{cause} do: kubectl uncordon", stack.diagnose()), "diagnosis reports the cordon")
    finally:
        kubectl(stack, "uncordon", node)


def test_two_gangs_that_fit_alone_run_one_after_the_other(stack: Stack) -> None:
    for name in ("first", "second"):
        stack.kube.create(gang(name, 2))
    for name in ("first", "second"):
        eventually(partial(is_completed, stack, name), f"gang {name} completes")
    spans = []
    for name in ("first", "second"):
        pods = stack.kube.list("v1", "Pod", "default", labels=f"volcano.sh/job-name={name}")
        states = [pod["status"]["containerStatuses"][0]["state"]["terminated"] for pod in pods]
        assert len(states) == 2
        spans.append((min(p["status"]["startTime"] for p in pods), max(state["finishedAt"] for state in states)))
    (_, ended_first), (started_second, _) = sorted(spans)
    assert ended_first <= started_second


# -- rejected ----------------------------------------------------------------------------------------------------------


def test_azure_rejects_a_pool_beyond_the_quota_before_anything_else_changes(stack: Stack) -> None:
    """Emulates a quota that is used up after the program's check."""
    job = stack.kube.get(JOB, "Job", "nccl-allreduce", "ai")
    stack.set(nodeCount="11")
    stack.alter(WITHOUT_PREFLIGHT)
    text = stack.up(check=False)
    stack.alter("")
    assert stack.returncode != 0
    assert 'Code="ErrCode_InsufficientVCPUQuota"' in text
    assert "requested 1056" in text
    assert len(gpu_nodes(stack.kube)) == 2
    assert stack.kube.get(JOB, "Job", "nccl-allreduce", "ai")["metadata"]["uid"] == job["metadata"]["uid"]
    stack.set(nodeCount="2")


@pytest.mark.long
def test_arm_rejects_a_change_that_the_program_makes_by_replacement(stack: Stack) -> None:
    stack.up()
    before = gpu_nodes(stack.kube)
    pool = before[0]["metadata"]["labels"]["kubernetes.azure.com/agentpool"]
    stack.alter(fixed_pool(pool))
    stack.set(vmSku=None, nodeCount=None, pools={"gpu": {"vmSku": H100, "osDiskGb": 256}})
    text = stack.up(check=False)
    assert stack.returncode != 0
    assert 'Code="PropertyChangeNotAllowed"' in text
    assert "Changing property 'properties.osDiskSizeGB' is not allowed." in text
    assert names(gpu_nodes(stack.kube)) == names(before)
    stack.alter("")
    steps = stack.steps()
    assert steps["azure-native:containerservice:AgentPool pool-gpu"] in ("replace", "create-replacement")
    assert not set(names(gpu_nodes(stack.kube))) & set(names(before))
    assert wait_for_end(stack.kube) == "Completed"


# -- other pools -------------------------------------------------------------------------------------------------------
