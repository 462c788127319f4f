from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pulumi
import pytest

from config.data.scheduling import AGENT_POOL_LABEL
from tests.support.mocked_azure import SUBSCRIPTION, Azure
from tests.support.mocks import Recorder, program
from tests.support.sizes import H100

TRAIN, DEV = {"vmSku": H100, "count": 2}, {"vmSku": "Standard_NC24ads_A100_v4", "count": 1, "spot": True}
STACK = {
    "pools": {"train": TRAIN, "aaa": DEV},
    "cluster": {"localAccounts": True},
    "workloads": "health-check,metaseq",
    "operators": {"gpuOperator": {"values": {"driver": {"rdma": {"enabled": False}}}}},
}

POLICIES = ("mellanox.com/v1alpha1:NicClusterPolicy nic-cluster-policy", "helm.sh/v3:Release gpu-operator")

LOGGED: list[str] = []


@pytest.fixture(scope="module")
def stack() -> Iterator[Recorder]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pulumi.log, "info", LOGGED.append)
        yield program(STACK)


def agent_pools(template: dict[str, Any]) -> list[str]:
    required = template["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    (expression,) = term["matchExpressions"]
    assert expression["key"] == AGENT_POOL_LABEL
    found: list[str] = expression["values"]
    return found


def test_each_pool_has_a_health_check_for_its_hardware(stack: Recorder) -> None:
    made = ["health-check-aaa", "health-check-aaa-devices", "health-check-train", "health-check-train-devices"]
    assert stack.names(":batch/v1:Job") == made
    for key, nodes, gpus in (("aaa", 1, "1"), ("train", 2, "8")):
        name = f"health-check-{key}"
        spec = stack.one(":batch/v1:Job", name).inputs["spec"]
        assert agent_pools(spec["template"]) == [stack.outputs["pools"][key]]
        assert (spec["completions"], stack.one(":PodGroup", name).inputs["spec"]["minMember"]) == (nodes, nodes)
        assert spec["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == gpus
        assert f"check_gpu_count {gpus}" in stack.one(":ConfigMap", name).inputs["data"]["aznhc.conf"]


def test_outputs_have_the_placement_of_each_job(stack: Recorder) -> None:
    found = stack.shown["workloadDetails"]
    placed = {name: (each["name"], each["pool"], each["nodes"], each["gpus"]) for name, each in found.items()}
    assert placed == {
        "health-check-aaa": ("health-check-aaa", "aaa", 1, 1),
        "health-check-train": ("health-check-train", "train", 2, 16),
        "metaseq": ("metaseq", "train", 1, 8),
    }
    assert found["health-check-aaa"]["why"] == "python -m diagnosis -n ai health-check-aaa"
    assert "job-name=health-check-aaa " in found["health-check-aaa"]["command"]


def test_an_update_logs_only_the_target_and_the_heading_of_the_price(stack: Recorder) -> None:
    assert stack.registered
    target, price = LOGGED
    region, change, subscription, tenant = target.splitlines()
    assert region == "target: region eastus (the default)"
    assert change == "  to change it: pulumi config set -s test location <region>"
    assert subscription == f"  subscription {SUBSCRIPTION}"
    assert tenant.startswith("  tenant ")
    assert "per hour" in price.splitlines()[-1]


def test_a_preview_logs_each_placement(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[str] = []
    monkeypatch.setattr(pulumi.log, "info", logged.append)
    program({**STACK, "location": "westus3"}, preview=True)
    target, *placements, price = logged
    assert target.startswith("target: region westus3\n  subscription ")
    assert sorted(placements) == [
        "health-check-aaa: 1 node of Spot pool aaa, 1 GPU (Standard_NC24ads_A100_v4)",
        "health-check-train: 2 nodes of pool train, 16 GPUs (Standard_ND96isr_H100_v5)",
        "metaseq: 1 node of pool train, 8 GPUs (Standard_ND96isr_H100_v5)",
    ]
    assert f"2 x pool train: {H100}" in price


def test_a_second_pool_only_changes_the_health_check(stack: Recorder) -> None:
    """Health checks' names contain the pool, so the old pool's check changes too."""
    before = program({**STACK, "pools": {"train": TRAIN}, "operators": {}})
    assert before.names(":batch/v1:Job") == ["health-check", "health-check-devices"]
    job = ("volcano.sh/v1alpha1:Job", "metaseq")
    assert before.one(*job).inputs == stack.one(*job).inputs


def test_pools_of_an_existing_cluster_wait_for_the_policies_of_drivers() -> None:
    policies = {f"kubernetes:{kind}" for kind in POLICIES}
    for azure, follows in ((Azure(), set()), (Azure(cluster=True), policies)):
        pool = program(STACK, azure).one(":AgentPool", "pool-train")
        assert policies & set(pool.dependencies) == follows
