from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from config.data.scheduling import COSCHEDULER
from k8s.objects import Object, holds
from operators.kueue import queues
from tests.e2e.pods import log_so_far, none_is_left
from tests.e2e.runs import observed
from tests.e2e.team_jobs import as_member, kubectl, shared_stack
from tests.support.world import Stack, eventually
from workloads._lib.results import SECONDS

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
NAME, TEAM, USER = "batch-inference", "blue", "alice"
JOB = f"batch-{NAME}"
CLAIM = "model-ibm-granite-granite-3.2-8b-instruct-azurefile-csi"
OPERATORS: dict[str, Any] = {"scheduler": COSCHEDULER, "kueue": {"enabled": True}, "appwrapper": {"enabled": True}}
OPTIONS: dict[str, Any] = {"team": TEAM, "prompts": 400}
LONG: dict[str, Any] = {**OPTIONS, "prompts": 12_000}
"""A batch of minutes: 16 prompts at a time, a fifth of a second each."""
TIMEOUT_S = 300
"""AppWrapper, which checks once a minute, restarts a job in this time."""


@pytest.fixture(scope="module")
def platform(new_stack: Callable[..., Stack]) -> Stack:
    teams = {TEAM: {"gpus": 8, "users": [USER]}, "red": {"gpus": 8, "users": ["bob"]}}
    storage = {"sharedClass": "azurefile-csi"}
    return shared_stack(new_stack, "shared", nodes=2, operators=OPERATORS, teams=teams, storage=storage)


@pytest.fixture(scope="module")
def stack(platform: Stack, new_stack: Callable[..., Stack]) -> Stack:
    return new_stack("batch", NAME, platformStack=platform.name, workloadOptions={NAME: OPTIONS})


def pod(platform: Stack) -> Object:
    found = platform.kube.list("v1", "Pod", TEAM, labels=f"batch.kubernetes.io/job-name={JOB}")
    return max(found, key=lambda each: str(each["metadata"]["creationTimestamp"]), default={})


def logs(platform: Stack, container: str = "load-generator") -> str:
    name = pod(platform).get("metadata", {}).get("name", "")
    return log_so_far(platform.kube, name, TEAM, container=container)


def is_running(platform: Stack) -> bool:
    running = pod(platform).get("status", {}).get("phase") == "Running"
    return running and "Starting main benchmark run" in logs(platform)


def check_end(platform: Stack, stack: Stack, phase: str) -> None:
    eventually(lambda: observed(stack, platform)[NAME].settled, "it has ended", TIMEOUT_S)
    assert observed(stack, platform)[NAME].phase == phase, logs(platform, "vllm") + logs(platform)


def test_it_is_created_as_the_teams_user_in_the_teams_namespace(platform: Stack, stack: Stack) -> None:
    stack.up()
    stack.up("--expect-no-changes")
    wrapper = platform.kube.get("workload.codeflare.dev/v1beta2", "AppWrapper", JOB, TEAM)
    assert wrapper["metadata"]["labels"]["workload.codeflare.dev/user"] == USER
    assert platform.kube.find("v1", "Namespace", "batch") is None


def test_it_is_admitted_by_the_teams_queue_and_answers_every_prompt(platform: Stack, stack: Stack) -> None:
    check_end(platform, stack, "Succeeded")
    (queued,) = platform.kube.list(queues.API, "Workload", TEAM)
    assert holds(queued, "Admitted")
    assert pod(platform)["spec"]["schedulerName"] == COSCHEDULER
    assert "ibm-granite/granite-3.2-8b-instruct: 400 prompts answered" in logs(platform)
    assert "Time spent downloading weights" in logs(platform, "vllm")


def test_a_member_reads_the_results_of_a_deleted_job_with_a_command_of_the_outputs(
    platform: Stack, stack: Stack
) -> None:
    kubectl(platform, "delete", "appwrapper", JOB, "--as", USER, "-n", TEAM)
    eventually(lambda: none_is_left(platform.kube, "v1", "Pod", TEAM), "its pods are gone")
    shown = as_member(platform, stack.workloads()[NAME]["results"], USER)
    result = json.loads(shown.splitlines()[-1])
    assert (result["completed"], result["model_id"]) == (400, "ibm-granite/granite-3.2-8b-instruct")
    refused = "cannot touch '/cache/mine': Read-only file system"
    write = f"kubectl exec -n {TEAM} job/{JOB}-results -- touch /cache/mine 2>&1 || true"
    assert refused in as_member(platform, write, USER)


def test_a_claim_cannot_shrink_and_a_preview_reports_it(platform: Stack, stack: Stack) -> None:
    stack.set(workloadOptions={NAME: {**OPTIONS, "cacheGi": 50}})
    assert "field can not be less than" in stack.pulumi("preview", check=False)
    assert "field can not be less than" in stack.up(check=False)
    stack.set(workloadOptions={NAME: OPTIONS})
    stack.up()  # the plugin keeps rejected inputs in the state


def test_when_its_node_is_lost_the_batch_runs_on_the_other_node_with_the_cached_model(
    platform: Stack, stack: Stack
) -> None:
    stack.set(workloadOptions={NAME: LONG})
    assert stack.steps() == {f"kubernetes:workload.codeflare.dev/v1beta2:AppWrapper {NAME}": "delete-replaced"}
    eventually(lambda: is_running(platform), "the batch runs", TIMEOUT_S)
    lost = pod(platform)["spec"]["nodeName"]
    platform.world.simulator("fault", "node", "--node", lost)
    stays = f"is Terminating on node {lost} (unreachable since"
    eventually(lambda: stays in platform.diagnose(JOB, namespace=TEAM), "diagnosis reports the lost node", 300, every=2)

    def moved() -> bool:
        return pod(platform).get("spec", {}).get("nodeName", lost) != lost and is_running(platform)

    eventually(moved, "it runs on the other node", 900)
    assert "Time spent downloading weights" not in logs(platform, "vllm")
    check_end(platform, stack, "Succeeded")
    assert "12000 prompts answered" in logs(platform)
    platform.world.simulator("heal")


def test_a_stack_that_is_deployed_again_reuses_its_results(platform: Stack, stack: Stack) -> None:
    stack.destroy()
    wrapper = ("workload.codeflare.dev/v1beta2", "AppWrapper")
    eventually(lambda: none_is_left(platform.kube, *wrapper, TEAM), "it is deleted")
    assert platform.kube.get("v1", "PersistentVolumeClaim", CLAIM, TEAM), "the model stays"
    stack.up()
    check_end(platform, stack, "Succeeded")
    assert "results of an earlier run exist" in logs(platform)
    assert "12000 prompts answered" in logs(platform)


def test_an_unknown_model_fails_the_job_and_its_container_is_reported(platform: Stack, stack: Stack) -> None:
    stack.set(workloadOptions={NAME: {**OPTIONS, "model": "nobody/knows-it", "restarts": 0}})
    assert "model nobody/knows-it is unknown" in stack.up()
    check_end(platform, stack, "Failed")
    assert any("container vllm ended with exit code 1" in text for text in observed(stack, platform)[NAME].report.exits)


def test_it_completes_as_a_plain_job(platform: Stack, stack: Stack) -> None:
    stack.set(workloadOptions={NAME: {**OPTIONS, "appWrapper": False, "run": 2}})
    stack.up()
    stack.up("--expect-no-changes")
    check_end(platform, stack, "Complete")
    assert "400 prompts answered" in logs(platform)


def test_destroy_keeps_the_platform_and_the_model(platform: Stack, stack: Stack) -> None:
    stack.destroy()
    for api, kind in (("v1", "Pod"), ("batch/v1", "Job")):
        eventually(partial(none_is_left, platform.kube, api, kind, TEAM), f"no {kind} is left", SECONDS)
    assert platform.kube.get("v1", "PersistentVolumeClaim", CLAIM, TEAM)
    assert platform.kube.get("v1", "Namespace", TEAM)
