"""The GPU nodes' only device of vendor 15b3 is Ethernet for accelerated networking."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from k8s.objects import Object
from tests.e2e.policies import CLUSTER_POLICY, NIC_POLICY, offers_gpus, policy_is_ready
from tests.e2e.runs import check_verdicts, observed
from tests.support.sizes import H100, T4
from tests.support.world import Stack, eventually, eventually_equals, gpu_nodes, names

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
INSTANCE_TYPE = "node.kubernetes.io/instance-type"


@pytest.fixture(scope="module")
def t4(new_stack: Callable[..., Stack]) -> Stack:
    made = new_stack("t4", vmSku=T4, nodeCount="1", workloads="")
    made.up()
    return made


def check_t4(stack: Stack, node: Object) -> None:
    labels, allocatable = node["metadata"]["labels"], node["status"]["allocatable"]
    assert labels["feature.node.kubernetes.io/pci-10de.present"] == "true"
    assert "feature.node.kubernetes.io/pci-15b3.present" not in labels
    assert allocatable["nvidia.com/gpu"] == "1"
    assert "nvidia.com/mlnxnics" not in allocatable
    pods = stack.kube.list("v1", "Pod", fields=f"spec.nodeName={node['metadata']['name']}")
    assert [name for name in names(pods) if name.startswith("mofed")] == []


def test_a_t4_pool_offers_gpus_and_no_hcas(t4: Stack) -> None:
    eventually(partial(offers_gpus, t4), "the T4 node offers its GPU")
    eventually(partial(policy_is_ready, t4, *CLUSTER_POLICY), "the ClusterPolicy is ready")
    (node,) = gpu_nodes(t4.kube)
    check_t4(t4, node)
    assert t4.kube.find(*NIC_POLICY) is None


def test_t4_beside_infiniband_needs_gpu_direct_rdma_off(t4: Stack) -> None:
    t4.set(vmSku=None, nodeCount=None, pools={"gpu": {"vmSku": T4, "count": 1}, "ib": {"vmSku": H100, "count": 1}})
    text = t4.pulumi("preview", check=False)
    assert t4.returncode != 0
    assert "GPU drivers there would wait for OFED forever" in text
    t4.set(operators={"gpuOperator": {"values": {"driver": {"rdma": {"enabled": False}}}}})
    t4.up()
    for policy in (CLUSTER_POLICY, NIC_POLICY):
        eventually(partial(policy_is_ready, t4, *policy), f"the {policy[1]} is ready")
    eventually(partial(offers_gpus, t4), "all GPU nodes offer their GPUs")
    nodes = {node["metadata"]["labels"][INSTANCE_TYPE]: node for node in gpu_nodes(t4.kube)}
    check_t4(t4, nodes[T4])
    assert nodes[H100]["status"]["allocatable"]["nvidia.com/mlnxnics"] == "8"


def test_each_pool_has_a_health_check_and_the_nccl_test_uses_the_infiniband_pool(t4: Stack) -> None:
    t4.set(workloads="health-check,nccl-allreduce")
    preview = t4.pulumi("preview")
    for line in (
        f"health-check-gpu: 1 node of pool gpu, 1 GPU ({T4})",
        f"health-check-ib: 1 node of pool ib, 8 GPUs ({H100})",
        f"nccl-allreduce: 1 node of pool ib, 8 GPUs ({H100})",
    ):
        assert line in preview
    t4.up()
    done = {"health-check-gpu": "Complete", "health-check-ib": "Complete", "nccl-allreduce": "Completed"}
    eventually_equals(lambda: {name: each.phase for name, each in observed(t4, t4).items()}, done, 180)
    sizes = {node["metadata"]["name"]: node["metadata"]["labels"][INSTANCE_TYPE] for node in gpu_nodes(t4.kube)}
    for name, found in observed(t4, t4).items():
        check_verdicts(found)
        assert {sizes[node] for _, node in found.ran_on if node in sizes} == {T4 if name.endswith("-gpu") else H100}
