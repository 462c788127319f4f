"""Two hundred random arrivals on eight nodes: no gang of four starts partially, even after kills.

Pods that bypass quotas take nodes from admitted gangs, so the scheduler must keep gangs together.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

import httpx
import pytest

from config.data.scheduling import COSCHEDULER, GPU_RESOURCE
from k8s.objects import Object
from simulator.kube.client import ApiError
from tests.e2e.team_jobs import QUEUED, shared_stack
from tests.support.checkout import kill, processes
from tests.support.manifests import manifest
from tests.support.world import Stack, eventually

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long, pytest.mark.timeout(2400)]
NODES, PODS, TEAM = 8, 4, "blue"
ARRIVALS, GANGS, SEED = 200, 0.4, 18
GROUP, GROUP_LABEL = "scheduling.x-k8s.io/v1alpha1", "scheduling.x-k8s.io/pod-group"
TOGETHER_S = 15.0
"""The scheduler binds a gang's pods one by one, and may be killed in between."""
KILLED = {
    50: "kueue-manager",
    100: "scheduler-plugins-scheduler",
    125: "kube-controller-manager",
    150: "kube-apiserver",
}
"""Processes to kill, by the next arrival's number."""


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    operators = {"kueue": {"enabled": True}, "scheduler": COSCHEDULER}
    teams = {TEAM: {"gpus": 8 * NODES, "users": ["alice"]}}
    return shared_stack(new_stack, "gangs", nodes=NODES, operators=operators, teams=teams)


def pod_spec(seconds: float) -> Object:
    limits = {"cpu": "1", "memory": "1Gi", GPU_RESOURCE: "8"}
    command = ["sleep", str(seconds)]
    image = "mcr.microsoft.com/azurelinux/busybox:1.36"
    return {
        "schedulerName": COSCHEDULER,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": image, "command": command, "resources": {"limits": limits}}],
    }


def arrival(number: int, chance: random.Random) -> list[Object]:
    name, seconds = f"arrival-{number:03d}", chance.uniform(0.5, 2.5)
    if chance.random() >= GANGS:
        return [manifest("v1", "Pod", name, "default", spec=pod_spec(seconds))]
    template = {"metadata": {"labels": {GROUP_LABEL: name}}, "spec": pod_spec(seconds)}
    spec = {"parallelism": PODS, "completions": PODS, "completionMode": "Indexed", "template": template}
    return [
        manifest(GROUP, "PodGroup", name, TEAM, spec={"minMember": PODS}),
        manifest("batch/v1", "Job", name, TEAM, labels=QUEUED, spec=spec),
    ]


def is_created(stack: Stack, obj: Object) -> bool:
    """Returns False while the API server or a webhook restarts."""
    try:
        stack.kube.create(obj)
    except ApiError as error:
        if not (error.passing or error.conflict):
            raise
        return error.conflict
    except httpx.HTTPError:
        return False
    return True


def listed(stack: Stack, *kind: str, labels: str = "") -> list[Object] | None:
    """Returns None while the API server restarts."""
    try:
        return stack.kube.list(*kind, labels=labels)
    except (ApiError, httpx.HTTPError):
        return None


class Watch:
    def __init__(self, stack: Stack) -> None:
        self._stack, self._since, self.complete = stack, dict[str, float](), set[str]()

    def look(self) -> None:
        begun: Counter[str] = Counter()
        for pod in listed(self._stack, "v1", "Pod", TEAM, labels=GROUP_LABEL) or []:
            begun[pod["metadata"]["labels"][GROUP_LABEL]] += bool(pod["spec"].get("nodeName"))
        self.complete |= {gang for gang, count in begun.items() if count >= PODS}
        partial_gangs = {gang for gang, count in begun.items() if 0 < count < PODS and gang not in self.complete}
        self._since = {gang: self._since.get(gang, time.monotonic()) for gang in partial_gangs}
        late = {gang: begun[gang] for gang, since in self._since.items() if time.monotonic() - since > TOGETHER_S}
        assert not late, f"started partially: {late}"


def unfinished(stack: Stack) -> list[str]:
    jobs, pods = listed(stack, "batch/v1", "Job", TEAM), listed(stack, "v1", "Pod", "default")
    if jobs is None or pods is None:
        return ["the API server does not answer"]
    left = [job["metadata"]["name"] for job in jobs if job.get("status", {}).get("succeeded", 0) < PODS]
    return left + [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") != "Succeeded"]


def details(stack: Stack, name: str) -> Object:
    kinds = (("batch/v1", "Job"), ("kueue.x-k8s.io/v1beta2", "Workload"), ("v1", "Pod"))
    found = [each for kind in kinds for each in stack.kube.list(*kind) if name in each["metadata"]["name"]]
    return {each["metadata"]["name"]: (each["spec"].get("nodeName"), each.get("status")) for each in found}


def test_no_gang_starts_partially(stack: Stack) -> None:
    chance, watch = random.Random(SEED), Watch(stack)  # noqa: S311 - the same arrivals each time
    for number in range(ARRIVALS):
        if number in KILLED:
            assert processes(stack.world.home, KILLED[number])
            kill(processes(stack.world.home, KILLED[number]))
        for obj in arrival(number, chance):
            eventually(partial(is_created, stack, obj), "it is created", 120)
        for _ in range(chance.randrange(3)):
            watch.look()
            time.sleep(chance.uniform(0, 0.5))
    deadline = time.monotonic() + 1200
    while left := unfinished(stack):
        watch.look()
        assert time.monotonic() < deadline, f"not ended: {[details(stack, name) for name in left]}"
        time.sleep(0.5)
    gangs = len(stack.kube.list("batch/v1", "Job", TEAM))
    assert gangs > ARRIVALS * GANGS / 2
    assert len(watch.complete) > gangs / 2, "most gangs were observed while they ran"
