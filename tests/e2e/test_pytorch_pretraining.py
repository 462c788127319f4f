from __future__ import annotations

import json
import math
import re
import struct
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from config.data.scheduling import BAD_NODE, COSCHEDULER
from k8s.objects import Object, holds
from operators.kueue import queues
from tests.e2e.pods import log_so_far, none_is_left
from tests.e2e.runs import observed
from tests.e2e.team_jobs import as_member, kubectl, shared_stack
from tests.support.world import Stack, eventually, eventually_equals, names

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
NAME, TEAM, USER = "pytorch-pretraining", "blue", "alice"
JOB, POD = f"train-{NAME}", f"train-{NAME}-master-0"
OPERATORS: dict[str, Any] = {
    "scheduler": COSCHEDULER,
    "kueue": {"enabled": True},
    "appwrapper": {"enabled": True},
    "trainingOperator": {"enabled": True},
}
OPTIONS: dict[str, Any] = {"team": TEAM, "modelSize": "125m", "steps": 1500, "checkpointSteps": 100}
TIMEOUT_S = 300
"""AppWrapper, which checks once a minute, restarts a job in this time."""


@pytest.fixture(scope="module")
def platform(new_stack: Callable[..., Stack]) -> Stack:
    teams = {TEAM: {"gpus": 8, "users": [USER], "pinsMemory": True}, "red": {"gpus": 8, "users": ["bob"]}}
    storage = {
        "sharedClass": "azurefile-csi",
        "protect": False,
        "containers": {"tokens": {"permissions": "rl", "upload": True}},
    }
    return shared_stack(new_stack, "shared", nodes=2, operators=OPERATORS, teams=teams, storage=storage)


@pytest.fixture(scope="module")
def stack(platform: Stack, new_stack: Callable[..., Stack]) -> Stack:
    return new_stack("train", NAME, platformStack=platform.name, workloadOptions={NAME: OPTIONS})


def pod(platform: Stack) -> Object:
    return platform.kube.find("v1", "Pod", POD, TEAM) or {}


def node(platform: Stack) -> str:
    found = pod(platform)
    return str(found["spec"]["nodeName"]) if found.get("status", {}).get("phase") == "Running" else ""


def logs(platform: Stack) -> str:
    return log_so_far(platform.kube, POD, TEAM)


def step(platform: Stack) -> int:
    found = re.findall(r"^step (\d+): loss", logs(platform), re.MULTILINE)
    return int(found[-1]) if found else 0


def test_it_is_created_as_the_teams_user_in_the_teams_namespace(platform: Stack, stack: Stack) -> None:
    stack.up()
    stack.up("--expect-no-changes")
    wrapper = platform.kube.get("workload.codeflare.dev/v1beta2", "AppWrapper", JOB, TEAM)
    assert wrapper["metadata"]["labels"]["workload.codeflare.dev/user"] == USER
    assert platform.kube.find("v1", "Namespace", "train") is None


def test_destroy_of_its_platform_is_rejected(platform: Stack, stack: Stack) -> None:
    refused = " ".join(platform.pulumi("destroy", "--yes", "--skip-preview", check=False).split())
    assert (
        f"stack {stack.name} runs on this platform. Destroy that stack first: pulumi destroy -s {stack.name}" in refused
    )
    assert "deleted" not in refused


def test_recovery_keeps_its_objects_after_the_rejected_destroy(platform: Stack, stack: Stack) -> None:
    """`make down` deletes leftovers of failed updates before a retry (simulator/command/recovery.py)."""
    take = f"recovery.delete_unrecorded({platform.name!r}, [{stack.name!r}], print)"
    command = [sys.executable, "-c", f"from simulator.command import recovery; {take}"]
    assert platform.world.run(command, environment=platform.environment).stdout == ""
    assert platform.kube.find("workload.codeflare.dev/v1beta2", "AppWrapper", JOB, TEAM)
    assert platform.kube.find("v1", "ServiceAccount", f"consumer-{stack.name}", "ai")


def test_it_is_admitted_by_the_teams_queue_and_trains(platform: Stack, stack: Stack) -> None:
    eventually(lambda: step(platform) >= 200, "it trains", TIMEOUT_S)
    (queued,) = platform.kube.list(queues.API, "Workload", TEAM)
    assert holds(queued, "Admitted")
    assert pod(platform)["spec"]["schedulerName"] == COSCHEDULER
    assert observed(stack, platform)[NAME].phase == "Running"


def test_it_moves_off_a_bad_node_and_resumes_at_the_same_step(platform: Stack) -> None:
    first, before = node(platform), step(platform)
    kubectl(platform, "label", "node", first, BAD_NODE)
    eventually(lambda: node(platform) not in ("", first), "it runs on the other node", TIMEOUT_S)
    begun = re.compile(r"from step (\d+)$", re.MULTILINE)
    eventually(lambda: begun.search(logs(platform)), "it has read its checkpoint", TIMEOUT_S)
    assert [int(number) >= before for number in begun.findall(logs(platform))] == [True]
    wrapper = platform.kube.get("workload.codeflare.dev/v1beta2", "AppWrapper", JOB, TEAM)
    assert wrapper["status"].get("resettingCount", 0) == 0, "a bad node does not fail the job"


def test_it_finishes(platform: Stack, stack: Stack) -> None:
    eventually(lambda: observed(stack, platform)[NAME].settled, "it has ended", TIMEOUT_S)
    assert observed(stack, platform)[NAME].phase == "Succeeded"
    assert step(platform) == OPTIONS["steps"]


def test_a_job_with_more_steps_continues_where_the_first_ended(platform: Stack, stack: Stack) -> None:
    (label, _, _) = BAD_NODE.partition("=")
    kubectl(platform, "label", "nodes", "--all", f"{label}-")
    stack.set(workloadOptions={NAME: {**OPTIONS, "steps": 100_000}})
    assert stack.steps() == {f"kubernetes:workload.codeflare.dev/v1beta2:AppWrapper {NAME}": "delete-replaced"}
    eventually(lambda: f"from step {OPTIONS['steps']}\n" in logs(platform), "it continues", TIMEOUT_S)
    eventually(lambda: step(platform) >= OPTIONS["steps"] + 200, "it has saved again", TIMEOUT_S)


def test_when_its_node_is_lost_it_resumes_on_the_other_from_its_last_checkpoint(platform: Stack) -> None:
    lost = node(platform)
    platform.world.simulator("fault", "node", "--node", lost)
    eventually(lambda: node(platform) not in ("", lost), "it runs on the other node", 900)
    begun = re.compile(r"from step (\d+)$", re.MULTILINE)
    eventually(lambda: begun.search(logs(platform)), "it has read its checkpoint", TIMEOUT_S)
    (at,) = map(int, begun.findall(logs(platform)))
    assert at > OPTIONS["steps"]
    assert at % OPTIONS["checkpointSteps"] == 0, "it did not get a signal to save"


def test_as_a_plain_job_on_two_nodes_it_resumes_and_uses_infiniband(platform: Stack, stack: Stack) -> None:
    before = step(platform)
    platform.world.simulator("heal")
    stack.set(workloadOptions={NAME: {**OPTIONS, "steps": 100_000, "numNodes": 2, "appWrapper": False}})
    stack.up()
    eventually(lambda: "16 x 16 sequences" in logs(platform), "both nodes have joined", TIMEOUT_S)
    eventually(lambda: step(platform) > before + 20, "they train", TIMEOUT_S)
    pods = platform.kube.list("v1", "Pod", TEAM, labels=f"training.kubeflow.org/job-name={JOB}")
    assert len({each["spec"]["nodeName"] for each in pods}) == 2
    found = logs(platform)
    assert "Using network IB" in found
    assert [int(number) >= before for number in re.findall(r"from step (\d+)$", found, re.MULTILINE)] == [True]


def test_it_trains_in_fp8_on_files_of_a_blob_container(platform: Stack, stack: Stack, tmp_path: Path) -> None:
    """Uploads the files as in docs/pytorch-pretraining.md."""
    (tmp_path / "corpus.bin").write_bytes(struct.pack("<4096H", *range(4096)))
    outputs = platform.outputs("--show-secrets")
    url = f"{outputs['platform']['containers']['tokens']['url']}/corpus.bin?{outputs['sas']['tokens']['uploadSas']}"
    platform.world.run(["curl", "-sf", "-T", "corpus.bin", "-H", "x-ms-blob-type: BlockBlob", url], cwd=tmp_path)
    before = step(platform)
    stack.set(workloadOptions={NAME: {**OPTIONS, "steps": 100_000, "fp8": True, "dataContainer": "tokens"}})
    stack.up()
    eventually(lambda: " 8 x " in logs(platform), "it has read its files on one node", TIMEOUT_S)
    eventually(lambda: step(platform) > before, "it trains", TIMEOUT_S)
    (least,) = (
        float(loss) for loss in re.findall(rf"^step {step(platform)}: loss ([\d.]+)", logs(platform), re.MULTILINE)
    )
    assert least < math.log(4), "less than the entropy of the synthetic data"


def test_a_member_reads_its_metrics_with_a_command_of_the_outputs(platform: Stack, stack: Stack) -> None:
    kubectl(platform, "delete", "appwrapper", JOB, "--as", USER, "-n", TEAM)
    labels = f"training.kubeflow.org/job-name={JOB}"  # without the data check's ended pod
    eventually(lambda: not platform.kube.list("v1", "Pod", TEAM, labels=labels), "its pods are gone", TIMEOUT_S)
    lines = as_member(platform, stack.workloads()[NAME]["results"], USER).splitlines()
    metrics = [json.loads(each) for each in lines if each.startswith("{")]
    assert 0 < metrics[0]["step"] < metrics[-1]["step"]
    assert {"loss", "tokens_per_s", "mfu"} <= metrics[-1].keys()
    kubectl(platform, "delete", "job", f"{JOB}-results", "--as", USER, "-n", TEAM)


def test_destroy_keeps_the_platform_and_the_checkpoints(platform: Stack, stack: Stack) -> None:
    stack.destroy()
    for api, kind in (("v1", "Pod"), ("batch/v1", "Job"), ("kubeflow.org/v1", "PyTorchJob")):
        eventually(partial(none_is_left, platform.kube, api, kind, TEAM), f"no {kind} is left")
    eventually_equals(
        lambda: names(platform.kube.list("v1", "PersistentVolumeClaim", TEAM)), [f"{JOB}-checkpoints-azurefile-csi"]
    )
    assert platform.kube.get("v1", "Namespace", TEAM)
