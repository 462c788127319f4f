from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.world import Stack, gpu_nodes, wait_for_end

pytestmark = [pytest.mark.simulator, pytest.mark.long]
CONFIG_MAP = "kubernetes:core/v1:ConfigMap nccl-allreduce"
CLUSTER = "azure-native:containerservice:ManagedCluster cluster"
JOB = "kubernetes:batch.volcano.sh/v1alpha1:Job nccl-allreduce"
POOL = "azure-native:containerservice:AgentPool pool-gpu"
TAINT = [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}]
LISTED_POOLS = "agentPoolProfiles"


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    drifting = new_stack("drift")
    drifting.up()
    assert wait_for_end(drifting.kube) == "Completed"
    return drifting


def pool_path(stack: Stack) -> str:
    name = stack.outputs()["pools"]["gpu"]
    group, cluster = stack.outputs()["resourceGroup"], stack.outputs()["clusterName"]
    service = f"resourceGroups/{group}/providers/Microsoft.ContainerService/managedClusters/{cluster}"
    return f"{service}/agentPools/{name}?api-version=2025-09-01"


def test_a_scaled_pool_is_scaled_back(stack: Stack) -> None:
    path = pool_path(stack)
    pool = stack.world.arm("GET", path)
    properties = {key: value for key, value in pool["properties"].items() if key != "provisioningState"}
    stack.world.arm("PUT", path, {"properties": properties | {"count": 3}})
    assert len(gpu_nodes(stack.kube)) == 3
    assert stack.refresh() == {POOL: ["count"], CLUSTER: [LISTED_POOLS]}
    assert stack.steps() == {POOL: "update", CLUSTER: "update"}
    assert len(gpu_nodes(stack.kube)) == 2


def test_a_deleted_config_map_is_created_again(stack: Stack) -> None:
    stack.kube.delete("v1", "ConfigMap", "nccl-allreduce", "ai")
    assert CONFIG_MAP in stack.refresh()
    steps = stack.steps()
    assert steps.pop(CONFIG_MAP) == "create"
    assert JOB not in steps
    assert stack.kube.find("v1", "ConfigMap", "nccl-allreduce", "ai")


def test_an_edited_script_is_restored(stack: Stack) -> None:
    before = stack.kube.get("v1", "ConfigMap", "nccl-allreduce", "ai")["data"]
    stack.kube.patch("v1", "ConfigMap", "nccl-allreduce", "ai", {"data": {"verdict.sh": "echo VERDICT: PASS"}})
    assert CONFIG_MAP in stack.refresh()
    assert stack.steps()[CONFIG_MAP] == "delete-replaced"  # the provider never updates a ConfigMap's data
    assert stack.kube.get("v1", "ConfigMap", "nccl-allreduce", "ai")["data"] == before


def test_a_deleted_job_runs_again(stack: Stack) -> None:
    stack.kube.delete("batch.volcano.sh/v1alpha1", "Job", "nccl-allreduce", "ai")
    assert JOB in stack.refresh()
    assert stack.steps()[JOB] == "create"
    assert wait_for_end(stack.kube) == "Completed"


def test_removed_taints_of_a_pool_are_restored(stack: Stack) -> None:
    path = pool_path(stack)
    properties = stack.world.arm("GET", path)["properties"]
    properties.pop("provisioningState")
    stack.world.arm("PUT", path, {"properties": properties | {"nodeTaints": []}})
    assert [node["spec"].get("taints", []) for node in gpu_nodes(stack.kube)] == [[], []]
    assert stack.refresh()[POOL] == ["nodeTaints"]
    assert stack.steps()[POOL] == "update"
    assert [node["spec"]["taints"] for node in gpu_nodes(stack.kube)] == [TAINT, TAINT]
