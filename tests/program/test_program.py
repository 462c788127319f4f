"""The whole program under Pulumi's mocks."""

from __future__ import annotations

import json

import pulumi
import pytest

from tests.program import golden
from tests.program.mocks import SECRET, Recorder, program


@pytest.mark.parametrize("stack", golden.STACKS)
def test_resources_are_as_reviewed(stack: str) -> None:
    expected = json.loads(golden.path(stack).read_text(encoding="utf-8"))
    assert json.loads(golden.text(stack)) == expected, "meant? then run: python -m tests.program.golden"


@pytest.fixture(scope="module")
def dev() -> Recorder:
    return program(golden.STACKS["dev"])


def test_every_object_in_the_cluster_has_the_explicit_provider(dev: Recorder) -> None:
    inside = [r for r in dev.registered if r.custom and r.type.startswith("kubernetes:")]
    assert inside
    assert {r.provider for r in inside} == {"pulumi:providers:kubernetes kubernetes"}


def test_the_kubeconfig_is_secret_everywhere(dev: Recorder) -> None:
    assert dev.one("providers:kubernetes").inputs["kubeconfig"] == SECRET
    assert dev.outputs["kubeconfig"] == SECRET


def test_outputs(dev: Recorder) -> None:
    assert dev.outputs == {
        "resourceGroup": "ai-on-aks-test",
        "clusterName": "ai-on-aks-test",
        "clusterId": dev.outputs["clusterId"],
        "kubeconfig": SECRET,
        "pools": {"gpu": dev.one(":AgentPool").inputs["agentPoolName"]},
        "registry": dev.outputs["platform"]["loginServer"],
        "storage": {},
        "sas": SECRET,
        "platform": dev.outputs["platform"],
        "workloads": {
            "nccl-allreduce": {
                "namespace": "ai",
                "name": "nccl-allreduce",
                "command": "kubectl logs -n ai nccl-allreduce-mpimaster-0",
            }
        },
    }


def test_only_the_job_waits_for_drivers(dev: Recorder) -> None:
    waiting = [
        r.name for r in dev.registered if r.custom and any("Policy" in d and "Patch" in d for d in r.dependencies)
    ]
    assert waiting == ["nccl-allreduce"]


def test_the_gpu_operator_follows_the_nic_policy_itself(dev: Recorder) -> None:
    assert (
        "kubernetes:mellanox.com/v1alpha1:NicClusterPolicy nic-cluster-policy"
        in dev.one("Release", "gpu-operator").dependencies
    )


@pytest.mark.parametrize("stack", ["no-nodes", "autoscale", "t4"])
def test_nothing_waits_for_hardware_that_may_never_come(stack: str) -> None:
    assert not [r for r in program(golden.STACKS[stack]).registered if r.type.endswith("Patch")]


def test_a_pool_without_infiniband_gets_no_ofed_and_no_rdma_driver() -> None:
    recorder = program(golden.STACKS["t4"])
    assert recorder.names("NicClusterPolicy") == []
    assert recorder.one("Release", "gpu-operator").inputs["values"]["driver"]["rdma"] == {"enabled": False}


def test_a_wrong_setting_ends_the_program_before_anything_is_declared() -> None:
    with pytest.raises(pulumi.RunError, match="nodeCount"):
        program({**golden.STACKS["dev"], "nodeCount": -1})
