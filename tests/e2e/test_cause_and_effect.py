"""What users of AKS really meet: things left out, things that break, things that are refused.

One stack with the NCCL job tells it, in the order of the file; each test leaves the program as it found it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from k8s.objects import Object
from simulator.kube.client import ApiError
from tests.e2e.mistakes import (
    WITHOUT_FEATURE_CHECK,
    WITHOUT_GPU_TOLERATIONS,
    WITHOUT_PREFLIGHT,
    WITHOUT_RDMA,
    fixed_pool,
)
from tests.e2e.policies import (
    CLUSTER_POLICY,
    all_ready,
    bound_job,
    completed,
    condition,
    gang,
    is_ready,
    is_silent,
    offers,
    offers_gpus,
    offers_none,
    placed,
    tolerate,
    unready_pods,
    unschedulable,
)
from tests.support.sizes import H100
from tests.support.world import Stack, ended, eventually, gpu_nodes, job_phase, log, names

pytestmark = [pytest.mark.simulator, pytest.mark.charts]
JOB = "batch.volcano.sh/v1alpha1"
SPOT = {"key": "kubernetes.azure.com/scalesetpriority", "value": "spot", "effect": "NoSchedule"}
NVIDIA_DEFAULT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
FAILED = "Terminated"  # by the policy of the job's master; Volcano says Failed of jobs that it gave up itself
ND = "standardNDSH100v5Family"
SPOT_POOL = {"vmSku": None, "nodeCount": None, "pools": {"gpu": {"vmSku": H100, "spot": True}}}
FEATURE = "providers/Microsoft.Features/featureProviders/Microsoft.ContainerService"
FEATURE += "/subscriptionFeatureRegistrations/AKSInfinibandSupport?api-version=2021-07-01"


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
    """Replaces the job by one that differs in a number; the phase in which that ended."""
    stack.set(workloadOptions={"nccl-allreduce": {"iterations": iterations}})
    stack.up()
    return ended(stack.kube)


def reboot(stack: Stack, pod: Object) -> None:
    """As far as the pod notices it: it is made anew. Its DaemonSet may have been first, with the new tolerations."""
    try:
        stack.kube.delete("v1", "Pod", pod["metadata"]["name"], pod["metadata"]["namespace"])
    except ApiError as error:
        if not error.not_found:
            raise


# -- left out ----------------------------------------------------------------------------------------------------------


def test_workers_without_the_toleration_leave_the_whole_gang_pending(stack: Stack) -> None:
    stack.alter(WITHOUT_GPU_TOLERATIONS)
    stack.up()

    def why() -> str:
        return unschedulable(stack, "nccl-allreduce", "ai")

    eventually(partial(offers_gpus, stack), "the nodes offer GPUs")
    eventually(lambda: "taint" in why(), "the gang waits for the toleration alone")
    assert "3 tasks in gang unschedulable" in why()
    assert placed(stack.kube, "ai", "nccl-allreduce") == []
    assert job_phase(stack.kube) == "Pending"
    told = stack.why("nccl-allreduce")
    assert "waits: the scheduler says: 0/" in told
    assert "waits: no toleration for taint sku=gpu:NoSchedule on nodes " in told


@pytest.mark.long
def test_workers_without_rdma_make_nccl_use_tcp_and_the_job_fails(stack: Stack) -> None:
    stack.alter(WITHOUT_RDMA)
    stack.up()
    assert ended(stack.kube) == FAILED
    text = log(stack.kube)
    assert "Using network Socket" in text
    assert "VERDICT: FAIL NCCL fell back to TCP (NET/Socket) between nodes" in text


def test_device_plugins_without_the_toleration_leave_nothing_to_run_on(stack: Stack) -> None:
    tolerations = stack.kube.get(*CLUSTER_POLICY)["spec"]["daemonsets"]["tolerations"]
    tolerate(stack, [NVIDIA_DEFAULT])
    try:
        for pod in stack.kube.list("v1", "Pod", "nvidia-operator", labels="app=nvidia-device-plugin-daemonset"):
            reboot(stack, pod)
        eventually(partial(offers_none, stack), "the nodes offer no GPUs")
        stack.kube.create(gang("hungry", 2))
        assert "gang unschedulable" in unschedulable(stack, "hungry")
        # Whichever is the first of the operator's DaemonSets that lost its pods: they are rolled one after the other.
        cause = r"does not run: DaemonSet nvidia-[a-z-]+ has no toleration for taint sku=gpu:NoSchedule"
        assert re.search(cause, stack.why("hungry", namespace="default"))
    finally:
        tolerate(stack, tolerations)
    eventually(partial(offers_gpus, stack), "the nodes offer GPUs again")
    eventually(partial(completed, stack, "hungry"), "the gang completes")


# -- broken ------------------------------------------------------------------------------------------------------------


def test_one_slow_link_fails_the_job_and_mending_it_passes_the_next(healed: Stack) -> None:
    healed.alter("")
    node = names(gpu_nodes(healed.kube))[0]
    healed.world.simulator("fault", "link", "--node", node, "--device", "mlx5_3", "--gbps", "100")
    assert run_again(healed, 19) == FAILED
    assert "VERDICT: FAIL bus bandwidth is below the floor" in log(healed.kube)
    healed.world.simulator("heal")
    assert run_again(healed, 20) == "Completed"


def test_a_gpu_off_the_bus_leaves_the_node_with_seven_and_pods_of_eight_are_refused(healed: Stack) -> None:
    node = names(gpu_nodes(healed.kube))[1]

    def offered() -> int:
        return offers(healed.kube.get("v1", "Node", node))

    def refused() -> list[str]:
        pods = healed.kube.list("v1", "Pod", "default", labels="batch.kubernetes.io/job-name=late")
        failed = [pod["status"] for pod in pods if pod["status"]["phase"] == "Failed"]
        return [f"{status['reason']}: {status['message']}" for status in failed]

    healed.world.simulator("fault", "gpu", "--node", node, "--device", "5")
    eventually(lambda: offered() == 7, "the node offers 7 GPUs")
    healed.kube.create(bound_job("late", node))
    unavailable = "requested number of devices unavailable for nvidia.com/gpu. Requested: 8, Available: 7"
    said = f"UnexpectedAdmissionError: Pod was rejected: Allocate failed due to {unavailable}, which is unexpected"
    assert said in eventually(refused, "the node refuses the pod")
    healed.world.simulator("heal")
    eventually(lambda: offered() == 8, "the node offers 8 GPUs again")
    late = partial(healed.kube.get, "batch/v1", "Job", "late", "default")
    eventually(lambda: condition(late(), "Complete"), "the Job has made another pod, which has run")


def test_a_node_that_fails_is_not_ready_and_comes_back_with_its_pods(healed: Stack) -> None:
    scheduler = healed.kube.list("v1", "Pod", "volcano-system", labels="app=volcano-scheduler")[0]
    for node in (names(gpu_nodes(healed.kube))[0], scheduler["spec"]["nodeName"]):
        healed.world.simulator("fault", "node", "--node", node)
        eventually(partial(unready_pods, healed, node), f"pods of {node} are not ready")
        eventually(partial(is_silent, healed, node), f"{node} is reported Unknown")
        healed.world.simulator("heal")
        eventually(partial(is_ready, healed, node), f"{node} is ready again")
        eventually(partial(all_ready, healed, node), f"pods of {node} are ready again")


# -- gangs -------------------------------------------------------------------------------------------------------------


def test_a_gang_that_is_too_big_waits_and_holds_nothing_that_another_needs(stack: Stack) -> None:
    stack.kube.create(gang("big", 3))
    assert "gang unschedulable" in unschedulable(stack, "big")
    stack.kube.create(gang("fits", 2))
    eventually(partial(completed, stack, "fits"), "the fitting gang completes")
    assert job_phase(stack.kube, "big", "default") == "Pending"
    assert placed(stack.kube, "default", "big") == []
    wanted = "3 pods want 8 nvidia.com/gpu each, and the nodes that they may use have room for 2"
    assert wanted in stack.why("big", namespace="default")
    stack.kube.delete(JOB, "Job", "big", "default")


def test_a_node_that_somebody_has_cordoned_is_told_with_their_client(stack: Stack) -> None:
    node = names(gpu_nodes(stack.kube))[0]
    kubectl = ["env", f"KUBECONFIG={stack.world.kubeconfig(stack.name)}", "kubectl"]
    stack.world.run([*kubectl, "cordon", node])
    try:
        told = (
            rf"waits: cordoned by kubectl: it takes no new pods on node {node} since \d\d:\d\d UTC do: kubectl uncordon"
        )
        eventually(lambda: re.search(told, stack.why()), "it is told who has cordoned the node")
    finally:
        stack.world.run([*kubectl, "uncordon", node])


def test_two_gangs_that_fit_alone_run_one_after_the_other(stack: Stack) -> None:
    for name in ("first", "second"):
        stack.kube.create(gang(name, 2))
    for name in ("first", "second"):
        eventually(partial(completed, stack, name), f"gang {name} completes")
    spans = []
    for name in ("first", "second"):
        pods = stack.kube.list("v1", "Pod", "default", labels=f"volcano.sh/job-name={name}")
        states = [pod["status"]["containerStatuses"][0]["state"]["terminated"] for pod in pods]
        assert len(states) == 2
        spans.append((min(p["status"]["startTime"] for p in pods), max(state["finishedAt"] for state in states)))
    (_, ended_first), (started_second, _) = sorted(spans)
    assert ended_first <= started_second


# -- refused -----------------------------------------------------------------------------------------------------------


def test_a_pool_beyond_the_quota_is_refused_before_anything_else_changes(stack: Stack) -> None:
    """By the program before anything is declared, and by Azure itself where the quota is used up meanwhile."""
    job = stack.kube.get(JOB, "Job", "nccl-allreduce", "ai")
    stack.set(nodeCount="11")
    text = stack.up(check=False)
    assert stack.returncode != 0
    assert f"864 vCPUs of quota {ND} are needed in eastus (pool gpu: 9 more nodes of {H100})" in text
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
def test_arm_refuses_what_replace_on_changes_would_have_replaced(stack: Stack) -> None:
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
    assert ended(stack.kube) == "Completed"


# -- other pools -------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_spot_pool_without_it_runs_the_job_in_two_partitions(stack: Stack) -> None:
    stack.world.arm("DELETE", FEATURE)
    stack.set(**SPOT_POOL)
    stack.alter(WITHOUT_FEATURE_CHECK)
    stack.up()
    for node in gpu_nodes(stack.kube):
        assert node["metadata"]["labels"]["kubernetes.azure.com/scalesetpriority"] == "spot"
        assert SPOT in node["spec"]["taints"]
    assert ended(stack.kube) == FAILED
    assert "status=12" in log(stack.kube)
    stack.alter("")
    stack.world.arm("PUT", FEATURE)
