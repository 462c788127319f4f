"""`podOverrides` that would keep a workload's pods from running where they are placed are refused, with the reason."""

from __future__ import annotations

from typing import Any

import pytest

import workloads
from config.problems.errors import Problem, SettingsError
from tests.support import golden
from tests.support.settings import SECRET, dev, load

KNOWN = workloads.find()
WORKLOAD = "nccl-allreduce"
GPU, RDMA = "nvidia.com/gpu", "nvidia.com/mlnxnics"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ZONE = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["eastus-1"]}
GPU_TOLERATION = {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}


def problems(spec: Any, workload: str = WORKLOAD, **keys: Any) -> list[Problem]:
    stack = dev() | keys
    stack["workloadOptions"] |= {
        workload: stack["workloadOptions"].get(workload, {}) | {"podOverrides": {"spec": spec}}
    }
    try:
        load(stack, known=KNOWN, secret=SECRET)
    except SettingsError as error:
        return list(error.problems)
    return []


def worker(**more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "worker", **more}]}


@pytest.mark.parametrize(
    ("spec", "where", "what"),
    [
        ({"schedulerName": "default-scheduler"}, ("schedulerName",), "pods of workload nccl-allreduce have volcano"),
        ({"schedulerName": None}, ("schedulerName",), "is null, and pods of workload nccl-allreduce need it"),
        ({"nodeName": "aks-gpu-0"}, ("nodeName",), "which would go past volcano"),
        ({"restartPolicy": "Always"}, ("restartPolicy",), "but pods of workload nccl-allreduce have Never"),
        ({"containers": None}, ("containers",), "is null"),
        (worker(resources=None), ("containers", 0, "resources"), "takes the devices of workload nccl-allreduce away"),
        (worker(resources={"limits": None}), ("containers", 0, "resources", "limits"), "takes the devices"),
        (worker(resources={"limits": {GPU: 0}}), ("containers", 0, "resources", "limits", GPU), "by itself"),
        (worker(resources={"requests": {RDMA: None}}), ("containers", 0, "resources", "requests", RDMA), "by itself"),
        ({"containers": [{"name": "wroker"}]}, ("containers", 0, "name"), "is 'wroker', no container of workload"),
        ({"nodeSelector": {"agentpool": "x", "ai-on-aks/pool": "dev"}}, ("nodeSelector", "ai-on-aks/pool"), "'gpu'"),
        ({"nodeSelector": {"kubernetes.azure.com/agentpool": "dev4082"}},
         ("nodeSelector", "kubernetes.azure.com/agentpool"), "it is 'gpuba3d'"),
        ({"nodeSelector": {"node.kubernetes.io/instance-type": "Standard_NC4as_T4_v3"}},
         ("nodeSelector", "node.kubernetes.io/instance-type"), "it is 'Standard_ND96isr_H100_v5'"),
        ({"nodeSelector": {"kubernetes.azure.com/scalesetpriority": "spot"}},
         ("nodeSelector", "kubernetes.azure.com/scalesetpriority"), "there is none"),
        ({"affinity": None}, ("affinity",), "is null"),
        ({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}]}}}},
         ("affinity", "nodeAffinity", REQUIRED), "keeps workload nccl-allreduce in one pool"),
        ({"tolerations": []}, ("tolerations",), "nodes of pool gpu have the taint sku=gpu:NoSchedule"),
        ({"tolerations": [{"key": "sku", "value": "cpu"}]}, ("tolerations",), "have the taint sku=gpu:NoSchedule"),
        ({"tolerations": [GPU_TOLERATION | {"effect": "NoExecute"}]}, ("tolerations",), "have the taint"),
    ],
)  # fmt: skip
def test_what_a_workload_needs_stays(spec: dict[str, Any], where: tuple[str | int, ...], what: str) -> None:
    (problem,) = problems(spec)
    assert problem.path == ("workloadOptions", WORKLOAD, "podOverrides", "spec", *where)
    assert what in problem.what
    assert problem.fix.startswith("pulumi config ")


@pytest.mark.parametrize(
    "spec",
    [
        {"schedulerName": "volcano", "restartPolicy": "Never", "priorityClassName": "low"},
        worker(resources={"limits": {"memory": "1Ti", "cpu": 90}}),
        {"containers": [{"name": "sidecar", "image": "busybox:1"}]},
        {"nodeSelector": {"topology.kubernetes.io/zone": "eastus-1", "ai-on-aks/pool": "gpu"}},
        {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "kubernetes.io/hostname"}]}}},
        {"tolerations": [{"operator": "Exists"}]},
        {"tolerations": [GPU_TOLERATION, {"key": "mine", "operator": "Exists"}]},
        {"tolerations": [{"key": "sku", "operator": "Exists", "effect": ""}]},
    ],
)
def test_all_else_is_the_users(spec: dict[str, Any]) -> None:
    assert not problems(spec)


def test_a_toleration_of_spot_is_needed_where_the_pool_is_spot() -> None:
    pools = {"s": {"vmSku": "Standard_ND96isr_H100_v5", "spot": True}}
    (problem,) = problems({"tolerations": [GPU_TOLERATION]}, vmSku="", nodeCount="", pools=pools)
    assert "have the taint kubernetes.azure.com/scalesetpriority=spot:NoSchedule" in problem.what


def test_a_notebook_is_a_deployment_which_restarts_always() -> None:
    (problem,) = problems({"restartPolicy": "Never"}, "jupyterlab")
    assert "have Always" in problem.what


@pytest.mark.parametrize("name", KNOWN)
def test_pods_are_as_their_workload_says(name: str) -> None:
    """The one container that has devices, or the only one, and its restart policy."""
    templates = [
        template
        for stack in ("dev", "batches", *({name} & set(golden.FILES)))
        for resource in golden.run(stack).registered
        if resource.name == name
        for template in _templates(resource.inputs.get("spec", {}))
    ]
    found = {
        (container["name"], template["spec"]["restartPolicy"])
        for template in templates
        if "affinity" in template["spec"]
        for container in _with_devices(template["spec"]["containers"])
    }
    assert found == {(KNOWN[name].pods.container, KNOWN[name].pods.restart_policy)}


def _templates(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Of Jobs of both kinds, of Deployments, of what an AppWrapper has in it, and of a RayJob's workers."""
    wrapped = [each["template"]["spec"] for each in spec.get("components", [])]
    trained = [pods for job in wrapped for pods in job.get("pytorchReplicaSpecs", {}).values()]
    workers = spec.get("rayClusterSpec", {}).get("workerGroupSpecs", [])
    made = (*spec.get("tasks", []), *wrapped, *trained, *workers, spec)
    return [each["template"] for each in made if "template" in each]


def _with_devices(containers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in containers if each.get("resources", {}).get("limits")] or containers
