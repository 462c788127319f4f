"""What users of AKS really meet: things left out, things that break, things that are refused.

One stack with the NCCL job tells it, in the order of the file; each test leaves the program as it found it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tests.simulator.mistakes import (
    WITHOUT_GPU_TOLERATIONS,
    WITHOUT_RDMA,
    WRONG_CHART_KEY,
    fixed_pool,
    gang,
    running,
)
from tests.simulator.world import Stack, ended, eventually, gpu_nodes, job_phase, log, names

pytestmark = pytest.mark.simulator
JOB, GROUP = "batch.volcano.sh/v1alpha1", "scheduling.volcano.sh/v1beta1"
FAILED = "Terminated"  # by the policy of the job's master; Volcano says Failed of jobs that it gave up itself
H100, T4 = "Standard_ND96isr_H100_v5", "Standard_NC4as_T4_v3"
CLUSTER_POLICY = ("nvidia.com/v1", "ClusterPolicy", "cluster-policy")
NIC_POLICY = ("mellanox.com/v1alpha1", "NicClusterPolicy", "nic-cluster-policy")
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


def condition(obj: dict[str, Any], kind: str) -> str:
    found = obj.get("status", {}).get("conditions", [])
    return next((entry["status"] for entry in found if entry["type"] == kind), "")


def is_ready(stack: Stack, node: str) -> bool:
    return condition(stack.kube.get("v1", "Node", node), "Ready") == "True"


def unready_pods(stack: Stack, node: str) -> list[str]:
    pods = stack.kube.list("v1", "Pod", fields=f"spec.nodeName={node},status.phase=Running")
    return names(pod for pod in pods if condition(pod, "Ready") != "True")


def all_ready(stack: Stack, node: str) -> bool:
    return not unready_pods(stack, node)


def completed(stack: Stack, job: str) -> bool:
    return job_phase(stack.kube, job, "default") == "Completed"


def unschedulable(stack: Stack, job: str, namespace: str) -> str:
    """Why Volcano holds the job's pods back."""

    def reason() -> str:
        groups = [
            group
            for group in stack.kube.list(GROUP, "PodGroup", namespace)
            if group["metadata"]["ownerReferences"][0]["name"] == job
        ]
        conditions = groups[0]["status"].get("conditions", []) if groups else []
        return next((entry["message"] for entry in conditions if entry["type"] == "Unschedulable"), "")

    return str(eventually(reason, f"the PodGroup of {job} says why it waits"))


# -- left out ----------------------------------------------------------------------------------------------------------


def test_workers_without_the_toleration_leave_the_whole_gang_pending(stack: Stack) -> None:
    stack.alter(WITHOUT_GPU_TOLERATIONS)
    stack.up()
    why = unschedulable(stack, "nccl-allreduce", "ai")
    assert "3 tasks in gang unschedulable" in why
    assert "taint" in why
    assert running(stack.kube, "ai", "nccl-allreduce") == []
    assert job_phase(stack.kube) == "Pending"


def test_workers_without_rdma_make_nccl_use_tcp_and_the_job_fails(stack: Stack) -> None:
    stack.alter(WITHOUT_RDMA)
    stack.up()
    assert ended(stack.kube) == FAILED
    text = log(stack.kube)
    assert "Using network Socket" in text
    assert "VERDICT: FAIL NCCL fell back to TCP (NET/Socket) between nodes" in text


# -- broken ------------------------------------------------------------------------------------------------------------


def test_one_slow_link_fails_the_job_and_mending_it_passes_the_next(healed: Stack) -> None:
    healed.alter("")
    node = names(gpu_nodes(healed.kube))[0]
    healed.world.simulator("fault", "link", "--node", node, "--device", "mlx5_3", "--gbps", "100")
    assert run_again(healed, 19) == FAILED
    assert "VERDICT: FAIL bus bandwidth is below the floor" in log(healed.kube)
    healed.world.simulator("heal")
    assert run_again(healed, 20) == "Completed"


def test_a_gpu_off_the_bus_leaves_the_node_with_seven(healed: Stack) -> None:
    node = names(gpu_nodes(healed.kube))[1]

    def offered() -> str:
        return str(healed.kube.get("v1", "Node", node)["status"]["allocatable"]["nvidia.com/gpu"])

    healed.world.simulator("fault", "gpu", "--node", node, "--device", "5")
    eventually(lambda: offered() == "7", "the node offers 7 GPUs")
    healed.world.simulator("heal")
    eventually(lambda: offered() == "8", "the node offers 8 GPUs again")


def test_a_node_that_fails_is_not_ready_and_comes_back_with_its_pods(healed: Stack) -> None:
    scheduler = healed.kube.list("v1", "Pod", "volcano-system", labels="app=volcano-scheduler")[0]
    for node in (names(gpu_nodes(healed.kube))[0], scheduler["spec"]["nodeName"]):
        healed.world.simulator("fault", "node", "--node", node)
        eventually(partial(unready_pods, healed, node), f"pods of {node} are not ready")
        assert condition(healed.kube.get("v1", "Node", node), "Ready") == "Unknown"
        healed.world.simulator("heal")
        eventually(partial(is_ready, healed, node), f"{node} is ready again")
        eventually(partial(all_ready, healed, node), f"pods of {node} are ready again")


# -- gangs -------------------------------------------------------------------------------------------------------------


def test_a_gang_that_is_too_big_waits_and_holds_nothing_that_another_needs(stack: Stack) -> None:
    stack.kube.create(gang("big", 3))
    assert "1/3 tasks in gang unschedulable" in unschedulable(stack, "big", "default")
    stack.kube.create(gang("fits", 2))
    eventually(partial(completed, stack, "fits"), "the fitting gang completes")
    assert job_phase(stack.kube, "big", "default") == "Pending"
    assert running(stack.kube, "default", "big") == []
    stack.kube.delete(JOB, "Job", "big", "default")


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


def test_a_wrong_chart_key_is_refused_by_the_settings_before_anything_is_planned(stack: Stack) -> None:
    stack.set(operators={"gpuOperator": {"values": {"drivr": {"enabled": False}}}})
    text = stack.pulumi("preview", check=False)
    assert stack.returncode != 0
    assert "operators.gpuOperator.values.drivr is a key that chart gpu-operator" in text
    assert "near: driver" in text
    assert "Traceback" not in text
    stack.set(operators=None)


def test_a_wrong_chart_key_is_refused_by_the_chart_itself_and_leaves_nothing(stack: Stack) -> None:
    before = names(stack.kube.list("v1", "Secret", "volcano-system", labels="owner=helm"))
    stack.alter(WRONG_CHART_KEY)
    text = stack.up(check=False)
    assert stack.returncode != 0
    assert "values don't meet the specifications of the schema(s)" in text
    assert "nonsense" in text
    assert names(stack.kube.list("v1", "Secret", "volcano-system", labels="owner=helm")) == before
    stack.alter("")
    stack.up("--expect-no-changes")


def test_a_pool_beyond_the_quota_is_refused_before_anything_else_changes(stack: Stack) -> None:
    job = stack.kube.get(JOB, "Job", "nccl-allreduce", "ai")
    stack.set(nodeCount="11")
    text = stack.up(check=False)
    assert stack.returncode != 0
    assert 'Code="ErrCode_InsufficientVCPUQuota"' in text
    assert "requested 1056" in text
    assert len(gpu_nodes(stack.kube)) == 2
    assert stack.kube.get(JOB, "Job", "nccl-allreduce", "ai")["metadata"]["uid"] == job["metadata"]["uid"]
    stack.set(nodeCount="2")
    stack.up("--expect-no-changes")


def test_arm_refuses_what_replace_on_changes_would_have_replaced(stack: Stack) -> None:
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


def test_a_spot_pool_without_the_infiniband_feature_runs_the_job_in_two_partitions(stack: Stack) -> None:
    stack.world.arm("DELETE", FEATURE)
    stack.set(pools={"gpu": {"vmSku": H100, "spot": True}})
    stack.up()
    for node in gpu_nodes(stack.kube):
        assert node["metadata"]["labels"]["kubernetes.azure.com/scalesetpriority"] == "spot"
        assert {"key": "kubernetes.azure.com/scalesetpriority", "value": "spot", "effect": "NoSchedule"} in node[
            "spec"
        ]["taints"]
    assert ended(stack.kube) == FAILED
    assert "status=12" in log(stack.kube)
    stack.world.arm("PUT", FEATURE)


# -- without InfiniBand ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def t4(new_stack: Callable[..., Stack]) -> Stack:
    made = new_stack("t4", vmSku=T4, nodeCount="1", workloads="")
    made.up()
    return made


def policy_is_ready(stack: Stack, api_version: str, kind: str, name: str) -> bool:
    policy = stack.kube.find(api_version, kind, name) or {}
    return bool(policy.get("status", {}).get("state") == "ready")


def offers_gpus(stack: Stack) -> bool:
    return all(node["status"]["allocatable"].get("nvidia.com/gpu", "0") != "0" for node in gpu_nodes(stack.kube))


def check_t4(stack: Stack, node: dict[str, Any]) -> None:
    labels, allocatable = node["metadata"]["labels"], node["status"]["allocatable"]
    assert labels["feature.node.kubernetes.io/pci-10de.present"] == "true"
    assert "feature.node.kubernetes.io/pci-15b3.present" not in labels
    assert allocatable["nvidia.com/gpu"] == "1"
    assert "nvidia.com/mlnxnics" not in allocatable
    pods = stack.kube.list("v1", "Pod", fields=f"spec.nodeName={node['metadata']['name']}")
    assert [name for name in names(pods) if name.startswith("mofed")] == []


def test_a_t4_pool_offers_its_gpus_and_nothing_of_infiniband(t4: Stack) -> None:
    eventually(partial(offers_gpus, t4), "the T4 node offers its GPU")
    eventually(partial(policy_is_ready, t4, *CLUSTER_POLICY), "the ClusterPolicy is ready")
    (node,) = gpu_nodes(t4.kube)
    check_t4(t4, node)
    assert t4.kube.find(*NIC_POLICY) is None


def test_t4_beside_infiniband_is_refused_until_gpu_direct_rdma_is_off(t4: Stack) -> None:
    t4.set(vmSku=None, nodeCount=None, pools={"gpu": {"vmSku": T4, "count": 1}, "ib": {"vmSku": H100, "count": 1}})
    text = t4.pulumi("preview", check=False)
    assert t4.returncode != 0
    assert "its GPU driver would wait for OFED for ever" in text
    t4.set(operators={"gpuOperator": {"values": {"driver": {"rdma": {"enabled": False}}}}})
    t4.up()
    for policy in (CLUSTER_POLICY, NIC_POLICY):
        eventually(partial(policy_is_ready, t4, *policy), f"the {policy[1]} is ready")
    eventually(partial(offers_gpus, t4), "all GPU nodes offer their GPUs")
    nodes = {node["metadata"]["labels"]["node.kubernetes.io/instance-type"]: node for node in gpu_nodes(t4.kube)}
    check_t4(t4, nodes[T4])
    assert nodes[H100]["status"]["allocatable"]["nvidia.com/mlnxnics"] == "8"
