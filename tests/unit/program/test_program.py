from __future__ import annotations

import json
from typing import Any

import pytest

import operators
import workloads
from components import platform_guard
from config.rules.names import namespace_problems
from config.schema.inventory import Inventory
from tests.support import golden, golden_format
from tests.support.mocked_azure import SECRET
from tests.support.mocks import Recorder, program
from tests.support.sizes import H100, H200


@pytest.mark.parametrize("stack", golden.NAMES)
def test_resources_equal_the_golden_file(stack: str) -> None:
    expected, found = golden.reviewed(stack), golden.resources(golden.run(stack))
    if found != expected:
        what = golden_format.report(expected, found)
        pytest.fail(f"{what}\nIf this is intended, run: python -m tests.support.golden", pytrace=False)


@pytest.fixture(scope="module")
def dev() -> Recorder:
    return golden.run("dev")


def test_outputs_of_a_platform(dev: Recorder) -> None:
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
        "price": dev.outputs["price"],
        "platform": SECRET,
        "workloads": dev.outputs["workloads"],
        "workloadDetails": SECRET,
        "files": {"ai/jupyterlab": "in use"},
    }
    assert dev.outputs["price"]["perHour"] > 2 * 98
    command = "kubectl logs -n ai nccl-allreduce-mpimaster-0"
    where = "2 nodes of pool gpu, 16 GPUs (Standard_ND96isr_H100_v5)"
    why = "python -m diagnosis -n ai nccl-allreduce"
    shown = dev.outputs["workloads"]
    assert shown["nccl-allreduce"] == f"{command}    # {where}; if it waits or fails: {why}"
    assert "8888:8888    # 1 node of pool gpu, no GPU (Standard_ND96isr_H100_v5); if" in shown["jupyterlab"]
    assert shown["health-check"].startswith("kubectl logs -n ai --selector ")
    assert dev.shown["workloadDetails"]["nccl-allreduce"] == {
        "namespace": "ai",
        "name": "nccl-allreduce",
        "command": command,
        "why": why,
        "ends": True,
        "pool": "gpu",
        "nodes": 2,
        "gpus": 16,
    }


def test_the_output_platform_has_no_secrets(dev: Recorder) -> None:
    exported = json.dumps(dev.shown["platform"])
    assert "workloads" not in exported
    assert "a-password" not in exported
    assert "sig=" not in exported
    assert "sig=" in json.dumps(dev.shown["sas"])


def test_passwords_and_their_hashes_are_only_in_secrets(dev: Recorder) -> None:
    plain = json.dumps([[resource.inputs for resource in dev.registered], dev.outputs], default=str)
    assert "a-password" not in plain
    assert "argon2" not in plain


def test_each_workload_has_a_stack_file_for_a_shared_platform() -> None:
    stacks = {name: golden.keys(name) for name in golden.FILES}
    alone = {name for name, keys in stacks.items() if "platformStack" in keys and keys["workloads"] == name}
    assert alone == set(workloads.find())


@pytest.mark.parametrize(
    "stack", [name for name in golden.FILES if golden.keys(name).get("platformStack") in ("dev", "av-resim")]
)
def test_a_consumer_stack_only_creates_objects_with_its_own_names(stack: str) -> None:
    made = [resource for resource in golden.run(stack).registered if resource.custom]
    metadata = [resource.inputs["metadata"] for resource in made if resource.type.startswith("kubernetes:")]
    spaces = {found.get("namespace", found["name"]) for found in metadata if found["name"] != f"consumer-{stack}"}
    assert {stack} <= spaces
    assert all(space.startswith(stack) for space in spaces)  # a prefix, or the namespace
    assert not [resource.type for resource in made if resource.type.startswith("azure-native:")]


@pytest.mark.parametrize("stack", [name for name in golden.FILES if name in golden.keys("dev")["workloads"].split(",")])
def test_a_consumer_stack_runs_the_same_workload_as_the_platform(stack: str, dev: Recorder) -> None:
    (placed,) = golden.run(stack).shown["workloadDetails"].values()
    own = dev.shown["workloadDetails"][stack]
    assert (
        placed.items()
        == {
            **own,
            "namespace": stack,
            "nodes": placed["nodes"],
            "gpus": own["gpus"] // own["nodes"] * placed["nodes"],
            "command": placed["command"],
            "why": f"python -m diagnosis -n {stack} {stack}",
        }.items()
    )
    assert f"-n {stack} " in placed["command"]


@pytest.mark.parametrize("size", [H200, "Standard_ND96asr_v4"])
def test_another_vm_size_changes_the_pool_of_each_workload(size: str, dev: Recorder) -> None:
    other = program({**golden.keys("dev"), "vmSku": size}, stack="dev", secret=["workloadOptions"])
    assert other.outputs["workloads"].keys() == dev.outputs["workloads"].keys()
    agent_pool = other.one(":AgentPool").inputs["agentPoolName"]
    assert agent_pool != dev.one(":AgentPool").inputs["agentPoolName"]
    on_gpus = [resource for resource in other.registered if agent_pool in json.dumps(resource.inputs.get("spec", {}))]
    assert {resource.name for resource in on_gpus} == {*dev.outputs["workloads"], "health-check-devices"}


def test_rejects_stacks_with_the_name_of_a_platforms_namespace(dev: Recorder) -> None:
    made = {resource.inputs["metadata"]["name"] for resource in dev.registered if resource.type.endswith(":Namespace")}
    used = {resource.inputs["namespace"] for resource in dev.registered if resource.type.endswith(":Release")}
    assert {"ai", "node-tools"} <= made
    taken = Inventory(operators.find(), {}).namespaces
    for name in made | used | {"kube-system", "default"}:
        (problem,) = namespace_problems(name, taken)
        assert problem.fix == f"pulumi stack rename -s {name} my-{name}"
        assert not list(namespace_problems(f"my-{name}", taken))


def test_jobs_depend_on_the_webhook_and_not_on_drivers(dev: Recorder) -> None:
    jobs = [r for r in dev.registered if r.type.endswith(":Job") and '"nvidia.com/gpu"' in json.dumps(r.inputs)]
    placed = dev.shown["workloadDetails"]
    assert {job.name for job in jobs} == {name for name in placed if placed[name]["ends"] and placed[name]["gpus"]}
    for job in jobs:
        needs = dependencies_of(dev, f"{job.type} {job.name}")
        assert "kubernetes:helm.sh/v3:Release volcano" in needs
        assert not [name for name in needs if "gpu-operator" in name or "network-operator" in name]
        assert "activeDeadlineSeconds" not in job.inputs["spec"]  # it would include the time in the queue


def test_other_taints_and_spot_pools_change_no_daemon_set_of_drivers(dev: Recorder) -> None:
    """A driver with a changed template stays outdated until its pods restart, and its policy notReady.

    network-operator v26.4.1: 0050_ofed-driver-ds.yaml:26 (OnDelete), state_skel.go:494.
    """
    pools = {"gpu": {"vmSku": H100, "taints": ["a=b:NoSchedule"]}, "more": {"vmSku": H100, "spot": True}}
    keys = {name: value for name, value in golden.keys("dev").items() if name not in ("vmSku", "nodeCount")}
    options = {name: {**found, "pool": "gpu"} for name, found in keys["workloadOptions"].items()}
    options |= {name: {"pool": "gpu"} for name in ("health-check", "olmo") if name not in options}
    other = program(keys | {"pools": pools, "workloadOptions": options}, stack="dev", secret=["workloadOptions"])
    for kind in (":Release", ":DaemonSet", ":NicClusterPolicy"):
        assert other.names(kind) == dev.names(kind)
        for name in dev.names(kind):
            assert other.one(kind, name).inputs == dev.one(kind, name).inputs


def dependencies_of(recorder: Recorder, name: str) -> set[str]:
    needs = {f"{resource.type} {resource.name}": resource.dependencies for resource in recorder.registered}
    found: set[str] = set()
    new = {name}
    while new := {below for above in new for below in needs.get(above, ())} - found:
        found |= new
    return found


@pytest.mark.parametrize("protect", [True, False])
def test_the_guard_protects_claims_if_data_is_protected(protect: bool) -> None:
    recorder = program({**golden.keys("entra"), "storage": {"protect": protect}})
    spec = recorder.one("AdmissionPolicy", f"{platform_guard.FILES}-policy").inputs["spec"]
    kept = recorder.one(":ConfigMap", platform_guard.NAME).inputs["metadata"].get("annotations", {})
    commands = ("pulumi config set -s test --path storage.protect false", "pulumi up -s test", "pulumi destroy -s test")
    assert list(kept.values()) == ([" && ".join(commands)] if protect else [])
    assert all(f"'{key}' in oldObject.metadata.annotations" in json.dumps(spec["variables"]) for key in kept)


@pytest.mark.parametrize("extra", [{}, {"storage": {"driver": "chart", "containers": {"data": {}}}}])
def test_only_namespaces_and_volumes_are_created_first(extra: dict[str, object]) -> None:
    """They retry until a new role applies. No namespace waits for a volume, which may wait for it."""
    recorder = program({**golden.keys("entra"), **extra})
    inside = [f"{r.type} {r.name}" for r in recorder.registered if r.custom and r.type.startswith("kubernetes:")]
    namespaces = {name for name in inside if name.startswith("kubernetes:core/v1:Namespace ")}
    volumes = {name for name in inside if name.startswith("kubernetes:core/v1:PersistentVolume ")}
    assert namespaces
    assert {name for name in inside if not dependencies_of(recorder, name) & namespaces} == namespaces | volumes


IMAGE = "registry.example.com/olmo:1"


def metaseq(size: str = "1.3b", **options: Any) -> Recorder:
    keys = {"vmSku": H100, "workloads": "metaseq", "modelSize": size, "workloadOptions": {"metaseq": options}}
    return program({**keys, "cluster": {"localAccounts": True}})


def test_another_model_size_only_changes_the_job_and_its_config_map() -> None:
    before, after = ({f"{r.type} {r.name}": r for r in metaseq(size).registered} for size in ("1.3b", "6.7b"))
    assert before.keys() == after.keys()
    changed = {name.rpartition(":")[2] for name, one in before.items() if one != after[name]}
    assert changed == {"ConfigMap metaseq", "Job metaseq"}


def test_outputs_have_the_log_and_enabled_dashboards() -> None:
    assert metaseq(aim=True).shown["workloadDetails"]["metaseq"] == {
        "namespace": "ai",
        "name": "metaseq",
        "command": "kubectl logs -n ai metaseq-mpimaster-0",
        "why": "python -m diagnosis -n ai metaseq",
        "ends": False,
        "pool": "gpu",
        "nodes": 1,
        "gpus": 8,
        "aim": "kubectl exec -n ai metaseq-mpiworker-0 -- aim up --repo /workspace/aim --port 43800 & "
        "kubectl port-forward -n ai pod/metaseq-mpiworker-0 43800:43800",
    }
    assert "tensorboard" in metaseq(tensorboard=True).shown["workloadDetails"]["metaseq"]


def test_checks_the_config_of_a_custom_image_before_the_training() -> None:
    stack = golden.keys("two-accounts")
    options = {**stack["workloadOptions"]["olmo"], "image": IMAGE}
    custom = program(stack | {"workloadOptions": {"olmo": options}})
    check = custom.one(":batch/v1:Job", "olmo-config")
    assert check.inputs["spec"]["template"]["spec"]["containers"][0]["image"] == IMAGE
    assert f"{check.type} {check.name}" in custom.one(":batch/v1:Job", "olmo").dependencies
