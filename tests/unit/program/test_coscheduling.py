from __future__ import annotations

import json
from typing import Any

import pulumi
import pytest

from config.data.scheduling import AGENT_POOL_LABEL
from tests.support import golden
from tests.support.mocked_azure import Azure
from tests.support.mocks import Recorder, Registered, program

COSCHEDULER = "scheduler-plugins-scheduler"
GANGS = {"health-check", "health-check-devices", "olmo"}
RELEASE = "kubernetes:helm.sh/v3:Release scheduler-plugins"


@pytest.fixture(scope="module")
def dev() -> Recorder:
    given = golden.keys("dev")
    options = {
        "olmo": {"numNodes": 2, "stopAt": 20},
        "jupyterlab": given["workloadOptions"]["jupyterlab"],
        "resim": {"inputContainer": "olmo-data", "outputContainer": "olmo-checkpoints"},
    }
    changed = {
        "workloads": "health-check,olmo,jupyterlab,gpu-batch,resim",
        "workloadOptions": options,
        "operators": {"scheduler": COSCHEDULER},
    }
    kept = {key: value for key, value in given.items() if key != "modelSize"}
    return program({**kept, **changed}, stack="dev", secret=["workloadOptions"])


def gpu_pods(found: Recorder) -> dict[str, dict[str, Any]]:
    made = [each for each in found.registered if each.inputs.get("spec", {}).get("template")]
    templates = {each.name: each.inputs["spec"]["template"] for each in made}
    return {name: template for name, template in templates.items() if AGENT_POOL_LABEL in json.dumps(template)}


def groups(found: Recorder) -> list[Registered]:
    return [each for each in found.registered if each.type.endswith(":PodGroup")]


def test_all_pods_on_gpu_nodes_use_the_scheduler(dev: Recorder) -> None:
    templates = gpu_pods(dev)
    assert templates.keys() == {*GANGS, "jupyterlab", "gpu-batch", "resim"}
    assert {name: each["spec"]["schedulerName"] for name, each in templates.items()} == dict.fromkeys(
        templates, COSCHEDULER
    )


def test_creates_its_pod_groups_before_their_jobs(dev: Recorder) -> None:
    assert {each.type for each in groups(dev)} == {"kubernetes:scheduling.x-k8s.io/v1alpha1:PodGroup"}
    assert {each.name: each.inputs["spec"] for each in groups(dev)} == {name: {"minMember": 2} for name in GANGS}
    for each in groups(dev):
        assert RELEASE in each.dependencies, "its CRD comes with the release"
        labels = gpu_pods(dev)[each.name]["metadata"]["labels"]
        assert labels == {"scheduling.x-k8s.io/pod-group": each.name}
        assert f"{each.type} {each.name}" in dev.one(":batch/v1:Job", each.name).dependencies


def test_consumer_stacks_use_the_scheduler_of_the_platform(dev: Recorder) -> None:
    consumer = program({"platformStack": "dev", "workloads": "health-check"}, Azure(stacks={"dev": dev}), "checks")
    assert gpu_pods(consumer)["health-check"]["spec"]["schedulerName"] == COSCHEDULER
    assert {each.type for each in groups(consumer)} == {"kubernetes:scheduling.x-k8s.io/v1alpha1:PodGroup"}


def test_rejects_an_mpi_job_of_a_consumer_stack_with_two_alternatives(dev: Recorder) -> None:
    with pytest.raises(pulumi.RunError, match="operators.scheduler of stack dev is scheduler-plugins-") as raised:
        program({"platformStack": "dev", "workloads": "nccl-allreduce"}, Azure(stacks={"dev": dev}), "checks")
    message = " ".join(str(raised.value).split())
    assert "run nccl-allreduce in another stack without teams, or set operators.scheduler to volcano" in message
    assert "pulumi config set" not in message, "another scheduler would end the jobs of teams"
