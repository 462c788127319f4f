"""The whole program under Pulumi's mocks."""

from __future__ import annotations

import json

import pulumi
import pytest

from config.names import namespace_problems
from tests.program import golden
from tests.program.mocks import SECRET, Azure, Recorder, program


@pytest.mark.parametrize("stack", golden.NAMES)
def test_resources_are_as_reviewed(stack: str) -> None:
    expected = json.loads(golden.path(stack).read_text(encoding="utf-8"))
    assert json.loads(golden.text(stack)) == expected, "meant? then run: python -m tests.program.golden"


@pytest.fixture(scope="module")
def dev() -> Recorder:
    return golden.run("dev")


def test_every_object_in_the_cluster_has_the_explicit_provider(dev: Recorder) -> None:
    inside = [r for r in dev.registered if r.custom and r.type.startswith("kubernetes:")]
    assert inside
    assert {r.provider for r in inside} == {"pulumi:providers:kubernetes kubernetes"}


def test_the_kubeconfig_is_secret_everywhere(dev: Recorder) -> None:
    assert dev.one("providers:kubernetes").inputs["kubeconfig"] == SECRET
    assert dev.outputs["kubeconfig"] == SECRET


def test_outputs(dev: Recorder) -> None:
    assert dev.outputs == {
        "resourceGroup": "ai-on-aks-dev",
        "clusterName": "ai-on-aks-dev",
        "clusterId": dev.outputs["clusterId"],
        "kubeconfig": SECRET,
        "pools": {"gpu": dev.one(":AgentPool").inputs["agentPoolName"]},
        "registry": dev.one("containerregistry:Registry").inputs["registryName"] + ".azurecr.io",
        "storage": {
            "account": dev.one("storage:StorageAccount").inputs["accountName"],
            "containers": ["olmo-checkpoints", "olmo-data"],
        },
        "sas": SECRET,
        "platform": dev.outputs["platform"],
        "workloads": dev.outputs["workloads"],
    }
    assert dev.outputs["workloads"]["nccl-allreduce"] == {
        "namespace": "ai",
        "name": "nccl-allreduce",
        "command": "kubectl logs -n ai nccl-allreduce-mpimaster-0",
        "ends": True,
    }


def test_the_platform_tells_other_stacks_no_secret(dev: Recorder) -> None:
    told = json.dumps(dev.outputs["platform"])
    assert "a-password" not in told
    assert "sig=" not in told
    assert "sig=" in json.dumps(dev.shown["sas"])


def test_a_platform_whose_settings_hold_a_secret_tells_it_as_one() -> None:
    stack = {**golden.keys("t4"), "operators": {"gpuOperator": {"values": {"toolkit": {"env": []}}}}}
    assert program(stack, secret=["operators"]).outputs["platform"] == SECRET


@pytest.mark.parametrize("stack", [name for name in golden.FILES if name != "dev"])
def test_a_workload_stack_makes_a_namespace_and_what_is_in_it(stack: str) -> None:
    made = [resource for resource in golden.run(stack).registered if resource.custom]
    assert {resource.provider for resource in made if resource.type.startswith("kubernetes:")} == {
        "pulumi:providers:kubernetes kubernetes"
    }
    metadata = [resource.inputs["metadata"] for resource in made if resource.type.startswith("kubernetes:")]
    spaces = {found.get("namespace", found["name"]) for found in metadata}
    assert {stack} <= spaces
    assert all(space.startswith(stack) for space in spaces)  # what has no namespace has its name in front
    assert not [resource.type for resource in made if resource.type.startswith("azure-native:")]


@pytest.mark.parametrize("stack", [name for name in golden.FILES if name != "dev"])
def test_a_workload_stack_runs_the_same_pods_as_the_platform_s_own(stack: str, dev: Recorder) -> None:
    (placed,) = golden.run(stack).outputs["workloads"].values()
    assert (
        placed.items()
        == {
            **dev.outputs["workloads"][stack],
            "namespace": stack,
            "command": placed["command"],
        }.items()
    )
    assert f"-n {stack} " in placed["command"]


def test_a_workload_stack_is_refused_before_anything_is_declared(dev: Recorder) -> None:
    with pytest.raises(pulumi.RunError, match='unknown stack "organization/ai-on-aks/prod"'):
        program({"platformStack": "prod", "workloads": "health-check"}, Azure(stacks={"dev": dev}), "checks")


@pytest.mark.parametrize("size", [golden.H200, "Standard_ND96asr_v4"])
def test_another_vm_size_retargets_every_workload(size: str, dev: Recorder) -> None:
    other = program({**golden.keys("dev"), "vmSku": size}, stack="dev", secret=["workloadOptions"])
    assert other.outputs["workloads"].keys() == dev.outputs["workloads"].keys()
    agent_pool = other.one(":AgentPool").inputs["agentPoolName"]
    assert agent_pool != dev.one(":AgentPool").inputs["agentPoolName"]
    on_gpus = [resource for resource in other.registered if agent_pool in json.dumps(resource.inputs.get("spec", {}))]
    assert {resource.name for resource in on_gpus} == set(dev.outputs["workloads"])


def test_no_stack_on_the_platform_can_have_the_name_of_a_namespace_of_it(dev: Recorder) -> None:
    made = {resource.inputs["metadata"]["name"] for resource in dev.registered if resource.type.endswith(":Namespace")}
    used = {resource.inputs["namespace"] for resource in dev.registered if resource.type.endswith(":Release")}
    assert {"ai", "node-tools"} <= made
    for name in made | used | {"kube-system", "default"}:
        (problem,) = namespace_problems(name)
        assert problem.fix == f"pulumi stack rename my-{name}"
        assert not list(namespace_problems(f"my-{name}"))


def test_only_workloads_wait_for_drivers(dev: Recorder) -> None:
    waiting = [
        r.name for r in dev.registered if r.custom and any("Policy" in d and "Patch" in d for d in r.dependencies)
    ]
    assert sorted(waiting) == [
        "health-check",
        "health-check",
        "jupyterlab",
        "metaseq",
        "nccl-allreduce",
        "olmo",
        "olmo",
    ]


def test_every_workload_follows_the_registry_so_that_none_goes_when_azure_refuses_another(dev: Recorder) -> None:
    following = {r.name for r in dev.registered if "azure-native:containerregistry:Registry registry" in r.dependencies}
    assert set(dev.outputs["workloads"]) <= following


def test_the_gpu_operator_follows_the_nic_policy_itself(dev: Recorder) -> None:
    assert (
        "kubernetes:mellanox.com/v1alpha1:NicClusterPolicy nic-cluster-policy"
        in dev.one("Release", "gpu-operator").dependencies
    )


def reach(recorder: Recorder, name: str) -> set[str]:
    """All that must be there before a resource, which is given as `<type> <name>`."""
    needs = {f"{resource.type} {resource.name}": resource.dependencies for resource in recorder.registered}
    found: set[str] = set()
    new = {name}
    while new := {below for above in new for below in needs.get(above, ())} - found:
        found |= new
    return found


@pytest.mark.parametrize("extra", [{}, {"storage": {"driver": "chart", "containers": {"data": {}}}}])
def test_what_comes_first_in_the_cluster_are_namespaces_and_volumes(extra: dict[str, object]) -> None:
    """These bear with a role that does not act yet; a namespace waits for no volume, which may wait for it."""
    recorder = program({**golden.keys("entra"), **extra})
    inside = [f"{r.type} {r.name}" for r in recorder.registered if r.custom and r.type.startswith("kubernetes:")]
    namespaces = {name for name in inside if name.startswith("kubernetes:core/v1:Namespace ")}
    volumes = {name for name in inside if name.startswith("kubernetes:core/v1:PersistentVolume ")}
    assert namespaces
    assert {name for name in inside if not reach(recorder, name) & namespaces} == namespaces | volumes


@pytest.mark.parametrize("stack", ["no-nodes", "autoscale", "t4"])
def test_nothing_waits_for_hardware_that_may_never_come(stack: str) -> None:
    assert not [r for r in golden.run(stack).registered if r.type.endswith("Patch")]


def test_a_pool_without_infiniband_gets_no_ofed_and_no_rdma_driver() -> None:
    recorder = golden.run("t4")
    assert recorder.names("NicClusterPolicy") == []
    assert recorder.one("Release", "gpu-operator").inputs["values"]["driver"]["rdma"] == {"enabled": False}


def test_a_wrong_setting_ends_the_program_before_anything_is_declared() -> None:
    with pytest.raises(pulumi.RunError, match="nodeCount"):
        program({**golden.keys("t4"), "nodeCount": -1})
