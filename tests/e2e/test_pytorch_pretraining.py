"""A pre-training of a team: up as its user, admitted, moved off a bad node, gone on from its checkpoint, finished.

One story, told in the order of the file; its platform has two nodes of eight GPUs, both teams' together.
"""

from __future__ import annotations

import json
import math
import re
import struct
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from config.data.scheduling import BAD_NODE, COSCHEDULER
from k8s.objects import Object, condition
from operators.kueue import queues
from simulator.kube.client import ApiError
from tests.e2e.runs import observed
from tests.e2e.team_jobs import as_member, kubectl, shared_stack
from tests.support.pools import A100
from tests.support.sizes import H100
from tests.support.world import Stack, World, eventually, log

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
NAME, TEAM, USER = "pytorch-pretraining", "blue", "alice"
JOB, POD = f"train-{NAME}", f"train-{NAME}-master-0"
OPERATORS: dict[str, Any] = {
    "scheduler": COSCHEDULER,
    "kueue": {"enabled": True},
    "appwrapper": {"enabled": True},
    "trainingOperator": {"enabled": True},
}
POOLS = {"gpu": {"vmSku": H100, "count": 2}, "old": {"vmSku": A100, "count": 0}}
OPTIONS: dict[str, Any] = {"team": TEAM, "modelSize": "125m", "steps": 1500, "checkpointSteps": 100}
LOOKS_S = 300
"""Within it AppWrapper, which looks once a minute, has taken a job away and started it anew."""


@pytest.fixture(scope="module")
def platform(new_stack: Callable[..., Stack]) -> Stack:
    teams = {TEAM: {"gpus": 8, "users": [USER], "pinsMemory": True}, "red": {"gpus": 8, "users": ["bob"]}}
    storage = {
        "sharedClass": "azurefile-csi",
        "protect": False,
        "containers": {"tokens": {"permissions": "rl", "upload": True}},
    }
    more = {"vmSku": None, "nodeCount": None, "pools": POOLS}
    return shared_stack(new_stack, "shared", nodes=2, operators=OPERATORS, teams=teams, storage=storage, **more)


@pytest.fixture(scope="module")
def stack(platform: Stack, world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    config = {"platformStack": platform.name, "workloadOptions": {NAME: OPTIONS}}
    made = Stack.create(world, "train", tmp_path_factory.mktemp("train") / "project", config, like=NAME)
    yield made
    made.discard()


def pod(platform: Stack) -> Object:
    return platform.kube.find("v1", "Pod", POD, TEAM) or {}


def node(platform: Stack) -> str:
    """Where it runs; empty while it does not."""
    found = pod(platform)
    return str(found["spec"]["nodeName"]) if found.get("status", {}).get("phase") == "Running" else ""


def said(platform: Stack) -> str:
    """Its log; empty before there is one."""
    try:
        return log(platform.kube, POD, TEAM)
    except ApiError:
        return ""


def step(platform: Stack) -> int:
    """The last that it tells of."""
    found = re.findall(r"^step (\d+): loss", said(platform), re.MULTILINE)
    return int(found[-1]) if found else 0


def test_what_the_team_or_the_gpus_cannot_is_refused_before_anything_is_made(platform: Stack, stack: Stack) -> None:
    stack.set(workloadOptions={NAME: {**OPTIONS, "numNodes": 3}})
    told = stack.pulumi("preview", check=False)
    assert "asks for 24 GPUs, and team blue can have 16 at most" in told
    stack.set(workloadOptions={NAME: {**OPTIONS, "pool": "old", "fp8": True}})
    assert "fp8 is true, and A100 multiplies nothing in FP8" in stack.pulumi("preview", check=False)
    stack.set(workloadOptions={NAME: OPTIONS})


def test_it_is_made_as_the_teams_user_in_its_namespace_and_nowhere_else(platform: Stack, stack: Stack) -> None:
    stack.up()
    stack.up("--expect-no-changes")
    wrapper = platform.kube.get("workload.codeflare.dev/v1beta2", "AppWrapper", JOB, TEAM)
    assert wrapper["metadata"]["labels"]["workload.codeflare.dev/user"] == USER
    assert platform.kube.find("v1", "Namespace", "train") is None


def test_its_platform_is_not_destroyed_without_a_word(platform: Stack, stack: Stack) -> None:
    refused = " ".join(platform.pulumi("destroy", "--yes", "--skip-preview", check=False).split())
    assert f"stack {stack.name} runs on this platform. Destroy it first: pulumi destroy -s {stack.name}" in refused
    assert "deleted" not in refused


def test_what_it_has_there_is_no_leftover_of_the_destroy_that_was_refused(platform: Stack, stack: Stack) -> None:
    """`make down` takes leftovers of failed updates away before it tries again (simulator/command/recovery.py)."""
    take = f"recovery.take_away_forgotten({platform.name!r}, [{stack.name!r}], print)"
    command = [sys.executable, "-c", f"from simulator.command import recovery; {take}"]
    told = platform.world.run(command, environment=platform.environment).stdout
    assert told == ""
    assert platform.kube.find("workload.codeflare.dev/v1beta2", "AppWrapper", JOB, TEAM)
    assert platform.kube.find("v1", "ServiceAccount", f"consumer-{stack.name}", "ai")


def test_it_is_admitted_by_the_teams_queue_and_trains(platform: Stack, stack: Stack) -> None:
    eventually(lambda: step(platform) >= 200, "it trains", LOOKS_S)
    (queued,) = platform.kube.list(queues.API, "Workload", TEAM)
    assert condition(queued, "Admitted")["status"] == "True"
    assert pod(platform)["spec"]["schedulerName"] == COSCHEDULER
    assert observed(stack, platform)[NAME].phase == "Running"


def test_off_a_bad_node_it_saves_and_goes_on_elsewhere_where_it_was(platform: Stack) -> None:
    first, before = node(platform), step(platform)
    kubectl(platform, "label", "node", first, BAD_NODE)
    eventually(lambda: node(platform) not in ("", first), "it runs on the other node", LOOKS_S)
    begun = re.compile(r"from step (\d+)$", re.MULTILINE)
    eventually(lambda: begun.search(said(platform)), "it has read its checkpoint", LOOKS_S)
    assert [int(number) >= before for number in begun.findall(said(platform))] == [True]
    wrapper = platform.kube.get("workload.codeflare.dev/v1beta2", "AppWrapper", JOB, TEAM)
    assert wrapper["status"].get("resettingCount", 0) == 0, "a bad node is no failure of the job"


def test_it_finishes(platform: Stack, stack: Stack) -> None:
    eventually(lambda: observed(stack, platform)[NAME].settled, "it has ended", LOOKS_S)
    assert observed(stack, platform)[NAME].phase == "Succeeded"
    assert step(platform) == OPTIONS["steps"]


def test_with_more_steps_it_is_another_job_that_goes_on_where_the_first_has_ended(
    platform: Stack, stack: Stack
) -> None:
    (label, _, _) = BAD_NODE.partition("=")
    kubectl(platform, "label", "nodes", "--all", f"{label}-")
    stack.set(workloadOptions={NAME: {**OPTIONS, "steps": 100_000}})
    assert stack.steps() == {f"kubernetes:workload.codeflare.dev/v1beta2:AppWrapper {NAME}": "delete-replaced"}
    eventually(lambda: f"from step {OPTIONS['steps']}\n" in said(platform), "it goes on", LOOKS_S)
    eventually(lambda: step(platform) >= OPTIONS["steps"] + 200, "it has saved again", LOOKS_S)


def test_when_its_node_is_lost_it_goes_on_elsewhere_from_its_last_checkpoint(platform: Stack) -> None:
    lost = node(platform)
    platform.world.simulator("fault", "node", "--node", lost)
    eventually(lambda: node(platform) not in ("", lost), "it runs on the other node", 900)
    begun = re.compile(r"from step (\d+)$", re.MULTILINE)
    eventually(lambda: begun.search(said(platform)), "it has read its checkpoint", LOOKS_S)
    (at,) = map(int, begun.findall(said(platform)))
    assert at > OPTIONS["steps"]
    assert at % OPTIONS["checkpointSteps"] == 0, "nobody told it to stop"


def test_plain_and_on_two_nodes_of_which_one_is_borrowed_it_goes_on_over_infiniband(
    platform: Stack, stack: Stack
) -> None:
    before = step(platform)
    platform.world.simulator("heal")
    stack.set(workloadOptions={NAME: {**OPTIONS, "steps": 100_000, "numNodes": 2, "appWrapper": False}})
    stack.up()
    eventually(lambda: "16 x 16 sequences" in said(platform), "both nodes have met", LOOKS_S)
    eventually(lambda: step(platform) > before + 20, "they train", LOOKS_S)
    pods = platform.kube.list("v1", "Pod", TEAM, labels=f"training.kubeflow.org/job-name={JOB}")
    assert len({each["spec"]["nodeName"] for each in pods}) == 2
    found = said(platform)
    assert "Using network IB" in found
    assert [int(number) >= before for number in re.findall(r"from step (\d+)$", found, re.MULTILINE)] == [True]


def test_in_fp8_it_learns_files_of_a_blob_container(platform: Stack, stack: Stack, tmp_path: Path) -> None:
    """They get there as docs/pytorch-pretraining.md has it."""
    (tmp_path / "corpus.bin").write_bytes(struct.pack("<4096H", *range(4096)))
    outputs = platform.outputs("--show-secrets")
    url = f"{outputs['platform']['containers']['tokens']['url']}/corpus.bin?{outputs['sas']['tokens']['uploadSas']}"
    platform.world.run(["curl", "-sf", "-T", "corpus.bin", "-H", "x-ms-blob-type: BlockBlob", url], cwd=tmp_path)
    before = step(platform)
    stack.set(workloadOptions={NAME: {**OPTIONS, "steps": 100_000, "fp8": True, "dataContainer": "tokens"}})
    stack.up()
    eventually(lambda: "in FP8" in said(platform), "it has read its files", LOOKS_S)
    eventually(lambda: step(platform) > before, "it trains", LOOKS_S)
    (least,) = (
        float(loss) for loss in re.findall(rf"^step {step(platform)}: loss ([\d.]+)", said(platform), re.MULTILINE)
    )
    assert least < math.log(4), "which the source of known entropy does not get below"


def test_a_member_reads_its_metrics_by_a_line_of_the_outputs(platform: Stack, stack: Stack) -> None:
    kubectl(platform, "delete", "appwrapper", JOB, "--as", USER, "-n", TEAM)
    labels = f"training.kubeflow.org/job-name={JOB}"  # the check of its data has a pod that has ended
    eventually(lambda: not platform.kube.list("v1", "Pod", TEAM, labels=labels), "its pods are gone", LOOKS_S)
    lines = as_member(platform, stack.workloads()[NAME]["results"], USER).splitlines()
    metrics = [json.loads(each) for each in lines if each.startswith("{")]
    assert 0 < metrics[0]["step"] < metrics[-1]["step"]
    assert {"loss", "tokens_per_s", "mfu"} <= metrics[-1].keys()
    kubectl(platform, "delete", "job", f"{JOB}-results", "--as", USER, "-n", TEAM)


def test_destroy_leaves_the_platform_and_the_checkpoints(platform: Stack, stack: Stack) -> None:
    stack.destroy()
    for api, kind in (("v1", "Pod"), ("batch/v1", "Job"), ("kubeflow.org/v1", "PyTorchJob")):
        eventually(partial(_none_is_left, platform, api, kind), f"no {kind} is left")
    eventually(partial(_only_checkpoints_are_left, platform), "only the claim of its checkpoints is left")
    assert platform.kube.get("v1", "Namespace", TEAM)


def _none_is_left(platform: Stack, api: str, kind: str) -> bool:
    return not platform.kube.list(api, kind, TEAM)


def _only_checkpoints_are_left(platform: Stack) -> bool:
    claims = platform.kube.list("v1", "PersistentVolumeClaim", TEAM)
    return [each["metadata"]["name"] for each in claims] == [f"{JOB}-checkpoints-azurefile-csi"]
