from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from config.data.versions import versions
from simulator.world import hyperv
from tests.e2e.node_tools import NAMESPACE, pods, ready
from tests.support.world import Stack, eventually, gpu_nodes, log, names, wait_for_end

pytestmark = [pytest.mark.simulator, pytest.mark.charts]
JOB = "kubernetes:batch.volcano.sh/v1alpha1:Job nccl-allreduce"
CLUSTER = "azure-native:containerservice:ManagedCluster cluster"
POOL = "azure-native:containerservice:AgentPool pool-gpu"


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Iterator[Stack]:
    dev = new_stack("dev")
    dev.up()
    yield dev
    dev.alter("")


def test_the_nccl_job_passes_on_two_nodes_over_infiniband(stack: Stack) -> None:
    assert wait_for_end(stack.kube) == "Completed"
    text = log(stack.kube)
    assert "VERDICT: PASS" in text
    assert "NET/IB" in text
    assert "NET/Socket/" not in text
    assert "nodes=2" in text


def test_nodes_have_devices_and_labels_of_their_hardware(stack: Stack) -> None:
    nodes = gpu_nodes(stack.kube)
    assert len(nodes) == 2
    for node in nodes:
        assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
        assert node["status"]["allocatable"]["nvidia.com/mlnxnics"] == "8"
        assert node["metadata"]["labels"]["feature.node.kubernetes.io/pci-15b3.present"] == "true"
        assert node["metadata"]["labels"]["feature.node.kubernetes.io/pci-10de.present"] == "true"


def test_scratch_is_mounted_on_every_node(stack: Stack) -> None:
    eventually(lambda: ready(stack, "local-nvme-scratch"), "every node has scratch")
    for pod in pods(stack, "local-nvme-scratch"):
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}/log?container=setup"
        assert "ready: /dev/md127 (8 disks) at /mnt/nvme/scratch" in stack.kube.text(path)


def test_nodes_have_labels_of_hyper_v_and_infiniband(stack: Stack) -> None:
    def labels() -> list[dict[str, str]]:
        found = [node["metadata"]["labels"] for node in gpu_nodes(stack.kube)]
        return found if all("ai-on-aks/ib-pkey" in each for each in found) else []

    nodes = eventually(labels, "every node has the labeler's labels")
    assert len({each["ai-on-aks/ib-pkey"] for each in nodes}) == 1
    assert len({each["hyperv/VirtualMachineId"] for each in nodes}) == len(nodes)
    assert len({each["ai-on-aks/ib-guid-mlx5_0"] for each in nodes}) == len(nodes)
    assert all(f"hyperv/{key}" in each for each in nodes for key in hyperv.KEYS)


def test_secrets_are_encrypted(stack: Stack) -> None:
    assert stack.outputs()["kubeconfig"] == "[secret]"
    state = stack.pulumi("stack", "export", "--stack", stack.name)
    assert "PRIVATE KEY" not in state
    assert "client-key-data" not in state


def test_a_preview_of_an_upgrade_updates_cluster_and_pools(stack: Stack) -> None:
    newer = list(versions().kubernetes.newest)[1]
    stack.set(cluster={"localAccounts": True, "kubernetesVersion": newer})
    operations = {name: step["op"] for name, step in stack.preview_steps().items()}
    stack.set(cluster={"localAccounts": True})
    assert {name: op for name, op in operations.items() if op != "same"} == {CLUSTER: "update", POOL: "update"}


def test_a_refresh_finds_only_the_clusters_list_of_pools(stack: Stack) -> None:
    """A refresh reads separate pools into the cluster's list, as with the official provider; `up` removes them."""
    assert stack.refresh() == {CLUSTER: ["agentPoolProfiles"]}
    preview = stack.pulumi("preview", "--diff")
    assert f"node pools {stack.outputs()['pools']['gpu']} stay as they are" in preview
    assert not [line for line in preview.splitlines() if line.lstrip().startswith("- ")], "nothing looks removed"
    assert stack.steps() == {CLUSTER: "update"}
    assert stack.refresh() == {}
    assert len(gpu_nodes(stack.kube)) == 2


def test_a_third_node_changes_only_the_pool_and_the_job_of_that_size(stack: Stack) -> None:
    stack.set(nodeCount="3")
    assert stack.steps() == {POOL: "update", JOB: "delete-replaced"}
    assert len(gpu_nodes(stack.kube)) == 3
    assert wait_for_end(stack.kube) == "Completed"
    assert "nodes=3" in log(stack.kube)


def test_without_workloads_and_nodes_the_pool_stays(stack: Stack) -> None:
    stack.set(nodeCount="0", workloads="")
    stack.up()
    assert gpu_nodes(stack.kube) == []
    assert stack.outputs()["pools"].keys() == {"gpu"}
    assert stack.up("--expect-no-changes")


def test_nodes_and_job_are_created_again(stack: Stack) -> None:
    stack.set(nodeCount="2", workloads="nccl-allreduce")
    stack.up()
    assert len(gpu_nodes(stack.kube)) == 2
    assert wait_for_end(stack.kube) == "Completed"


def test_another_vm_size_creates_the_new_pool_before_it_deletes_the_old_one(stack: Stack) -> None:
    before = names(gpu_nodes(stack.kube))
    stack.set(vmSku="Standard_ND96isr_H200_v5")
    steps = [line for line in stack.up().splitlines() if "AgentPool" in line]
    created = next(i for i, line in enumerate(steps) if "created replacement" in line)
    deleted = next(i for i, line in enumerate(steps) if "deleting original" in line)
    assert created < deleted
    nodes = gpu_nodes(stack.kube)
    assert {n["metadata"]["labels"]["node.kubernetes.io/instance-type"] for n in nodes} == {"Standard_ND96isr_H200_v5"}
    assert not set(before) & set(names(nodes))
    assert wait_for_end(stack.kube) == "Completed"


def test_destroy_leaves_nothing(stack: Stack) -> None:
    stack.destroy()
    assert not list((stack.world.home / "clusters").iterdir())
