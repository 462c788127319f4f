from __future__ import annotations

from typing import Any

import pytest

import workloads
from config.problems.errors import Problem
from tests.support import golden
from tests.support.case_files import case_table
from tests.support.settings import SECRET, dev, problems

KNOWN = workloads.find()
WORKLOAD = "nccl-allreduce"
GPU_TOLERATION = {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}


def found(spec: Any, workload: str = WORKLOAD, **keys: Any) -> list[Problem]:
    stack = dev() | keys
    stack["workloadOptions"] |= {
        workload: stack["workloadOptions"].get(workload, {}) | {"podOverrides": {"spec": spec}}
    }
    return problems(stack, known=KNOWN, secret=SECRET)


def worker(**more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "worker", **more}]}


@case_table(__file__, "needed")
def test_rejects_overrides_of_what_a_workload_needs(spec: dict[str, Any], where: list[str | int], what: str) -> None:
    (problem,) = found(spec)
    assert problem.path == ("workloadOptions", WORKLOAD, "podOverrides", "spec", *where)
    assert what in problem.what
    assert problem.fix.startswith("pulumi config ")


@case_table(__file__, "free")
def test_accepts_other_overrides(spec: dict[str, Any]) -> None:
    assert not found(spec)


def test_pods_on_a_spot_pool_need_its_toleration() -> None:
    pools = {"s": {"vmSku": "Standard_ND96isr_H100_v5", "spot": True}}
    (problem,) = found({"tolerations": [GPU_TOLERATION]}, vmSku="", nodeCount="", pools=pools)
    assert "have the taint kubernetes.azure.com/scalesetpriority=spot:NoSchedule" in problem.what


def test_a_notebook_needs_the_restart_policy_of_a_deployment() -> None:
    (problem,) = found({"restartPolicy": "Never"}, "jupyterlab")
    assert "have Always" in problem.what


@pytest.mark.parametrize("name", KNOWN)
def test_each_workload_declares_its_container_and_restart_policy(name: str) -> None:
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
    wrapped = [each["template"]["spec"] for each in spec.get("components", [])]
    trained = [pods for job in wrapped for pods in job.get("pytorchReplicaSpecs", {}).values()]
    workers = spec.get("rayClusterSpec", {}).get("workerGroupSpecs", [])
    made = (*spec.get("tasks", []), *wrapped, *trained, *workers, spec)
    return [each["template"] for each in made if "template" in each]


def _with_devices(containers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in containers if each.get("resources", {}).get("limits")] or containers
