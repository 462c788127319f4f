"""The Metaseq training, declared by the whole program."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.mocks import Recorder, Registered, program
from workloads.metaseq.sizes import models

NODES = {"66b": 2, "175b": 8}


def stack(size: str = "1.3b", **options: Any) -> dict[str, Any]:
    return {
        "vmSku": "Standard_ND96isr_H100_v5",
        "nodeCount": str(max(2, options.get("numNodes", 1))),
        "cluster": {"localAccounts": True},
        "workloads": "metaseq,nccl-allreduce",
        "modelSize": size,
        "workloadOptions": {"metaseq": options},
    }


def described(recorder: Recorder) -> dict[str, Registered]:
    return {f"{resource.type} {resource.name}": resource for resource in recorder.registered}


@pytest.mark.parametrize("size", models().sizes)
def test_all_sizes_can_be_declared(size: str) -> None:
    found = program(stack(size, numNodes=NODES.get(size, 1)))
    assert (
        f"--decoder-layers\n{models().sizes[size].layers}\n"
        in found.one(":ConfigMap", "metaseq").inputs["data"]["arguments"]
    )
    workers = found.one("volcano.sh/v1alpha1:Job", "metaseq").inputs["spec"]["tasks"][1]
    assert workers["replicas"] == NODES.get(size, 1)


def test_another_size_touches_the_job_and_its_config_map_alone() -> None:
    before, after = described(program(stack("1.3b"))), described(program(stack("6.7b")))
    assert before.keys() == after.keys()
    assert {name.rpartition(":")[2] for name, one in before.items() if one != after[name]} == {
        "ConfigMap metaseq",
        "Job metaseq",
    }


def test_the_job_waits_for_its_config_map() -> None:
    job = program(stack()).one("volcano.sh/v1alpha1:Job", "metaseq")
    assert "kubernetes:core/v1:ConfigMap metaseq" in job.dependencies


def test_outputs_tell_the_log_and_the_dashboards_that_are_on() -> None:
    found = program(stack(aim=True)).shown["workloadDetails"]["metaseq"]
    assert found == {
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
    assert "tensorboard" in program(stack(tensorboard=True)).shown["workloadDetails"]["metaseq"]
