"""A batch of inference of a team: up as its user, admitted, answered; off a lost node; its results told again.

One story, told in the order of the file; its platform has two nodes of eight GPUs, both teams' together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from config.data.scheduling import COSCHEDULER
from k8s.objects import Object, condition
from operators.kueue import queues
from simulator.kube.client import ApiError
from tests.e2e.runs import observed
from tests.e2e.team_jobs import as_member, kubectl, shared_stack
from tests.support.world import Stack, World, eventually
from workloads._lib.results import SECONDS

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
NAME, TEAM, USER = "batch-inference", "blue", "alice"
JOB = f"batch-{NAME}"
CLAIM = "model-ibm-granite-granite-3.2-8b-instruct-azurefile-csi"
OPERATORS: dict[str, Any] = {
    "scheduler": COSCHEDULER,
    "kueue": {"enabled": True},
    "appwrapper": {"enabled": True},
}
OPTIONS: dict[str, Any] = {"team": TEAM, "prompts": 400}
LONG: dict[str, Any] = {**OPTIONS, "prompts": 12_000}
"""Takes minutes: 16 prompts at once, a fifth of a second each."""
LOOKS_S = 300
"""Within it AppWrapper, which looks once a minute, has taken a job away and started it anew."""


@pytest.fixture(scope="module")
def platform(new_stack: Callable[..., Stack]) -> Stack:
    teams = {TEAM: {"gpus": 8, "users": [USER]}, "red": {"gpus": 8, "users": ["bob"]}}
    storage = {"sharedClass": "azurefile-csi"}
    return shared_stack(new_stack, "shared", nodes=2, operators=OPERATORS, teams=teams, storage=storage)


@pytest.fixture(scope="module")
def stack(platform: Stack, world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    config = {"platformStack": platform.name, "workloadOptions": {NAME: OPTIONS}}
    made = Stack.create(world, "batch", tmp_path_factory.mktemp("batch") / "project", config, like=NAME)
    yield made
    made.discard()


def pod(platform: Stack) -> Object:
    """The newest of the job's."""
    found = platform.kube.list("v1", "Pod", TEAM, labels=f"batch.kubernetes.io/job-name={JOB}")
    return max(found, key=lambda each: str(each["metadata"]["creationTimestamp"]), default={})


def said(platform: Stack, container: str = "load-generator") -> str:
    """The log of one of its containers; empty before there is one."""
    name = pod(platform).get("metadata", {}).get("name", "")
    try:
        return platform.kube.text(f"/api/v1/namespaces/{TEAM}/pods/{name}/log", {"container": container})
    except ApiError:
        return ""


def asks(platform: Stack) -> bool:
    """Whether the batch is under way."""
    running = pod(platform).get("status", {}).get("phase") == "Running"
    return running and "Starting main benchmark run" in said(platform)


def finished(platform: Stack, stack: Stack, phase: str) -> None:
    eventually(lambda: observed(stack, platform)[NAME].settled, "it has ended", LOOKS_S)
    assert observed(stack, platform)[NAME].phase == phase, said(platform, "vllm") + said(platform)


def test_a_gated_model_without_a_token_is_refused_before_anything_is_made(platform: Stack, stack: Stack) -> None:
    stack.set(workloadOptions={NAME: {**OPTIONS, "model": "meta-llama/Llama-3.1-8B-Instruct"}})
    told = stack.pulumi("preview", check=False)
    assert "huggingFaceToken is not set, and meta-llama/Llama-3.1-8B-Instruct is gated" in told
    stack.set(workloadOptions={NAME: OPTIONS})


def test_it_is_made_as_the_teams_user_in_its_namespace_and_nowhere_else(platform: Stack, stack: Stack) -> None:
    stack.up()
    stack.up("--expect-no-changes")
    wrapper = platform.kube.get("workload.codeflare.dev/v1beta2", "AppWrapper", JOB, TEAM)
    assert wrapper["metadata"]["labels"]["workload.codeflare.dev/user"] == USER
    assert platform.kube.find("v1", "Namespace", "batch") is None


def test_it_is_admitted_by_the_teams_queue_and_every_prompt_is_answered(platform: Stack, stack: Stack) -> None:
    finished(platform, stack, "Succeeded")
    (queued,) = platform.kube.list(queues.API, "Workload", TEAM)
    assert condition(queued, "Admitted")["status"] == "True"
    assert pod(platform)["spec"]["schedulerName"] == COSCHEDULER
    assert "ibm-granite/granite-3.2-8b-instruct: 400 prompts answered" in said(platform)
    assert "Time spent downloading weights" in said(platform, "vllm")


def test_once_the_job_is_gone_a_member_reads_its_results_by_a_line_of_the_outputs(
    platform: Stack, stack: Stack
) -> None:
    kubectl(platform, "delete", "appwrapper", JOB, "--as", USER, "-n", TEAM)
    eventually(partial(_none_is_left, platform, "v1", "Pod"), "its pods are gone")
    shown = as_member(platform, stack.workloads()[NAME]["results"], USER)
    result = json.loads(shown.splitlines()[-1])
    assert (result["completed"], result["model_id"]) == (400, "ibm-granite/granite-3.2-8b-instruct")
    refused = "cannot touch '/cache/mine': Read-only file system"
    write = f"kubectl exec -n {TEAM} job/{JOB}-results -- touch /cache/mine 2>&1 || true"
    assert refused in as_member(platform, write, USER)


def test_a_claim_does_not_shrink_and_a_preview_says_so(platform: Stack, stack: Stack) -> None:
    stack.set(workloadOptions={NAME: {**OPTIONS, "cacheGi": 50}})
    assert "field can not be less than" in stack.pulumi("preview", check=False)
    assert "field can not be less than" in stack.up(check=False)
    stack.set(workloadOptions={NAME: OPTIONS})
    stack.up()  # the plugin keeps what it was refused in the state


def test_when_its_node_is_lost_the_batch_is_answered_elsewhere_by_the_model_that_is_there(
    platform: Stack, stack: Stack
) -> None:
    stack.set(workloadOptions={NAME: LONG})
    assert stack.steps() == {f"kubernetes:workload.codeflare.dev/v1beta2:AppWrapper {NAME}": "delete-replaced"}
    eventually(lambda: asks(platform), "the batch is under way", LOOKS_S)
    lost = pod(platform)["spec"]["nodeName"]
    platform.world.simulator("fault", "node", "--node", lost)
    stays = f"is Terminating on node {lost}, which is silent since"
    eventually(lambda: stays in platform.why(JOB, namespace=TEAM), "diagnosis says why it does not end", 300, every=2)
    eventually(lambda: pod(platform).get("spec", {}).get("nodeName", lost) != lost and asks(platform), "elsewhere", 900)
    assert "Time spent downloading weights" not in said(platform, "vllm")
    finished(platform, stack, "Succeeded")
    assert "12000 prompts answered" in said(platform)
    platform.world.simulator("heal")


def test_a_stack_that_comes_again_finds_its_results_and_asks_nothing(platform: Stack, stack: Stack) -> None:
    stack.destroy()
    eventually(partial(_none_is_left, platform, "workload.codeflare.dev/v1beta2", "AppWrapper"), "it is gone")
    assert platform.kube.get("v1", "PersistentVolumeClaim", CLAIM, TEAM), "the model stays"
    stack.up()
    finished(platform, stack, "Succeeded")
    assert "an earlier run has made these results" in said(platform)
    assert "12000 prompts answered" in said(platform)


def test_a_server_that_fails_fails_the_job_and_its_container_is_named(platform: Stack, stack: Stack) -> None:
    """Nobody knows of that model, neither here nor on the simulator's hub."""
    stack.set(workloadOptions={NAME: {**OPTIONS, "model": "nobody/knows-it", "restarts": 0}})
    assert "nothing is known of nobody/knows-it" in stack.up()
    finished(platform, stack, "Failed")
    assert any("container vllm ended with exit code 1" in text for text in observed(stack, platform)[NAME].report.exits)


def test_a_plain_job_does_it_too(platform: Stack, stack: Stack) -> None:
    stack.set(workloadOptions={NAME: {**OPTIONS, "appWrapper": False, "run": 2}})
    stack.up()
    stack.up("--expect-no-changes")
    finished(platform, stack, "Complete")
    assert "400 prompts answered" in said(platform)


def test_destroy_leaves_the_platform_and_the_model(platform: Stack, stack: Stack) -> None:
    stack.destroy()
    for api, kind in (("v1", "Pod"), ("batch/v1", "Job")):
        eventually(partial(_none_is_left, platform, api, kind), f"no {kind} is left, nor who read", SECONDS)
    assert platform.kube.get("v1", "PersistentVolumeClaim", CLAIM, TEAM)
    assert platform.kube.get("v1", "Namespace", TEAM)


def _none_is_left(platform: Stack, api: str, kind: str) -> bool:
    return not platform.kube.list(api, kind, TEAM)
