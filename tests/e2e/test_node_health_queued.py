from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from config.data.scheduling import COSCHEDULER
from k8s.objects import Object
from tests.e2e.node_checks import (
    CRON,
    a_slow_link,
    idle_pods,
    node_verdict,
    only,
    ready_for_idle_checks,
    run_now,
    taint,
)
from tests.e2e.pods import log_so_far
from tests.e2e.runs import observed
from tests.e2e.team_jobs import shared_stack
from tests.support.world import Stack, eventually, gpu_nodes, names

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long, pytest.mark.timeout(1800)]
NAME, TEAM, USER = "pytorch-pretraining", "blue", "alice"
RAY = "ray-finetuning"
POD = f"train-{NAME}-master-0"
OPERATORS: dict[str, Any] = {
    "scheduler": COSCHEDULER,
    "kueue": {"enabled": True},
    "appwrapper": {"enabled": True},
    "trainingOperator": {"enabled": True},
    "kuberay": {"enabled": True},
}
OPTIONS: dict[str, Any] = {"team": TEAM, "modelSize": "125m", "steps": 100, "nodeCheck": "light"}
TIMEOUT_S = 300


@pytest.fixture(scope="module")
def platform(new_stack: Callable[..., Stack]) -> Stack:
    teams = {TEAM: {"gpus": 8, "users": [USER]}, "red": {"gpus": 8, "users": ["bob"]}}
    storage = {"sharedClass": "azurefile-csi"}
    return shared_stack(new_stack, "checked", nodes=2, operators=OPERATORS, teams=teams, storage=storage)


@pytest.fixture(scope="module")
def stack(platform: Stack, new_stack: Callable[..., Stack]) -> Stack:
    return new_stack("train", NAME, platformStack=platform.name, workloadOptions={NAME: OPTIONS})


@pytest.fixture(scope="module")
def bad(platform: Stack) -> Iterator[str]:
    with a_slow_link(platform) as name:
        yield name


def pod(platform: Stack) -> Object:
    return platform.kube.find("v1", "Pod", POD, TEAM) or {}


def running(platform: Stack) -> int:
    return sum(check["status"].get("phase") == "Running" for check in idle_pods(platform))


def test_a_teams_job_is_requeued_and_moves_to_a_good_node(platform: Stack, stack: Stack, bad: str) -> None:
    (good,) = {*names(gpu_nodes(platform.kube))} - {bad}
    with only(platform, bad):
        stack.up()
        eventually(lambda: taint(platform, bad) == ["NoSchedule"], "the bad node is tainted", TIMEOUT_S)
        eventually(lambda: node_verdict(platform, bad).startswith("VERDICT: FAIL check_hw_ib"), "its verdict", 60)
    eventually(lambda: observed(stack, platform)[NAME].settled, "it has ended", 2 * TIMEOUT_S)
    assert observed(stack, platform)[NAME].phase == "Succeeded"
    assert pod(platform)["spec"]["nodeName"] == good
    assert re.search(r"^step 100: loss", log_so_far(platform.kube, POD, TEAM), re.MULTILINE)


def test_checks_of_idle_nodes_yield_to_a_teams_job(platform: Stack, stack: Stack, bad: str) -> None:
    """The CronJob deletes its checks, because no scheduler evicts pods for teams' priority class."""
    platform.world.simulator("heal")
    ready_for_idle_checks(platform)
    for number in (1, 2):  # one node in each run
        run_now(platform, CRON, "ai", ends=False)
        eventually(lambda: running(platform) == number, "a check", 120)  # noqa: B023
    platform.kube.patch("v1", "Node", bad, None, {"spec": {"taints": None}})
    pod_overrides = {"spec": {"priorityClassName": "default-priority"}}
    stack.set(workloadOptions={NAME: {**OPTIONS, "steps": 200, "podOverrides": pod_overrides}})
    stack.up()
    eventually(lambda: observed(stack, platform)[NAME].settled, "it has ended", TIMEOUT_S)
    assert observed(stack, platform)[NAME].phase == "Succeeded"
    assert idle_pods(platform) == []


def test_a_ray_job_gets_a_worker_on_another_node(platform: Stack, bad: str, new_stack: Callable[..., Stack]) -> None:
    """The head, without a GPU, stays on its node."""
    platform.world.simulator("fault", "link", "--node", bad, "--device", "mlx5_4", "--gbps", "100")
    options = {"team": TEAM, "model": "facebook/opt-125m", "epochs": 20, "nodeCheck": "light"}
    tuned = new_stack("tune", RAY, platformStack=platform.name, workloadOptions={RAY: options})
    with only(platform, bad):
        tuned.up()
        eventually(lambda: taint(platform, bad) == ["NoSchedule"], "the bad node is tainted", TIMEOUT_S)
    eventually(lambda: observed(tuned, platform)[RAY].settled, "it has ended", 2 * TIMEOUT_S)
    assert observed(tuned, platform)[RAY].phase == "Succeeded"
    assert platform.kube.get("ray.io/v1", "RayJob", f"tune-{RAY}", TEAM)["status"].get("failed", 0) == 0
