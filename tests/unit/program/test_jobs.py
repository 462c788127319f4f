"""Metaseq and OLMo, declared by the whole program: what an option changes."""

from __future__ import annotations

from typing import Any

from tests.support import golden
from tests.support.mocks import Recorder, program

IMAGE = "registry.example.com/olmo:1"


def metaseq(size: str = "1.3b", **options: Any) -> Recorder:
    keys = {"vmSku": golden.H100, "workloads": "metaseq", "modelSize": size, "workloadOptions": {"metaseq": options}}
    return program({**keys, "cluster": {"localAccounts": True}})


def test_another_size_changes_only_the_job_and_its_config_map() -> None:
    before, after = ({f"{r.type} {r.name}": r for r in metaseq(size).registered} for size in ("1.3b", "6.7b"))
    assert before.keys() == after.keys()
    changed = {name.rpartition(":")[2] for name, one in before.items() if one != after[name]}
    assert changed == {"ConfigMap metaseq", "Job metaseq"}


def test_outputs_have_the_log_and_the_dashboards_that_are_on() -> None:
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


def test_the_config_of_a_custom_image_is_checked_before_the_training_is_created() -> None:
    stack = golden.keys("two-accounts")
    options = {**stack["workloadOptions"]["olmo"], "image": IMAGE}
    custom = program(stack | {"workloadOptions": {"olmo": options}})
    check = custom.one(":batch/v1:Job", "olmo-config")
    assert check.inputs["spec"]["template"]["spec"]["containers"][0]["image"] == IMAGE
    assert f"{check.type} {check.name}" in custom.one(":batch/v1:Job", "olmo").dependencies
