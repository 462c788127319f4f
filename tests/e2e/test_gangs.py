"""Two hundred random arrivals on eight nodes: no gang of four ever begins half, whatever is killed in between.

What others run beside all quotas takes nodes away from gangs that Kueue has let in: then it is the scheduler's to hold
them together.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest

from config.data.scheduling import COSCHEDULER, GPU_RESOURCE
from k8s.objects import Object
from simulator.kube.client import ApiError
from tests.support.checkout import kill, processes
from tests.support.world import Stack, eventually, gpu_nodes

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long, pytest.mark.timeout(2400)]
NODES, PODS, TEAM = 8, 4, "blue"
ARRIVALS, GANGS, SEED = 200, 0.4, 18
GROUP, GROUP_LABEL = "scheduling.x-k8s.io/v1alpha1", "scheduling.x-k8s.io/pod-group"
QUEUED = {"kueue.x-k8s.io/queue-name": "default-queue"}
TOGETHER_S = 15.0
"""A scheduler binds one pod after the other, and may be killed in between; what is begun is ended by its next start."""
KILLED = {
    50: "kueue-manager",
    100: "scheduler-plugins-scheduler",
    125: "kube-controller-manager",
    150: "kube-apiserver",
}
"""Before which arrival."""


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    operators = {"kueue": {"enabled": True}, "scheduler": COSCHEDULER}
    teams = {TEAM: {"gpus": 8 * NODES, "users": ["alice"]}}
    made = new_stack("gangs", workloads="", nodeCount=NODES, operators=operators, teams=teams)
    made.up()
    eventually(lambda: [offers(node) for node in gpu_nodes(made.kube)] == [8] * NODES, "GPUs", 300)
    return made


def offers(node: Object) -> int:
    return int(node["status"]["allocatable"].get(GPU_RESOURCE, 0))


def pod_spec(seconds: float) -> Object:
    """A pod on a whole node, for so long."""
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
    """A gang of the team's, or a single pod of nobody's that passes all queues."""
    name, seconds = f"arrival-{number:03d}", chance.uniform(0.5, 2.5)
    if chance.random() >= GANGS:
        metadata: dict[str, Any] = {"name": name, "namespace": "default"}
        return [{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(seconds)}]
    metadata = {"name": name, "namespace": TEAM}
    template = {"metadata": {"labels": {GROUP_LABEL: name}}, "spec": pod_spec(seconds)}
    spec = {"parallelism": PODS, "completions": PODS, "completionMode": "Indexed", "template": template}
    return [
        {"apiVersion": GROUP, "kind": "PodGroup", "metadata": metadata, "spec": {"minMember": PODS}},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata | {"labels": QUEUED}, "spec": spec},
    ]


def is_taken(stack: Stack, obj: Object) -> bool:
    """Not by an API server or a webhook that starts again."""
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
    """None while the API server starts again."""
    try:
        return stack.kube.list(*kind, labels=labels)
    except (ApiError, httpx.HTTPError):
        return None


class Watch:
    """Gangs that are neither whole nor not begun, and since when."""

    def __init__(self, stack: Stack) -> None:
        self._stack, self._since, self.whole = stack, dict[str, float](), set[str]()

    def look(self) -> None:
        begun: Counter[str] = Counter()
        for pod in listed(self._stack, "v1", "Pod", TEAM, labels=GROUP_LABEL) or []:
            begun[pod["metadata"]["labels"][GROUP_LABEL]] += bool(pod["spec"].get("nodeName"))
        self.whole |= {gang for gang, count in begun.items() if count >= PODS}
        half = {gang for gang, count in begun.items() if 0 < count < PODS and gang not in self.whole}
        self._since = {gang: self._since.get(gang, time.monotonic()) for gang in half}
        late = {gang: begun[gang] for gang, since in self._since.items() if time.monotonic() - since > TOGETHER_S}
        assert not late, f"begun half: {late}"


def unfinished(stack: Stack) -> list[str]:
    jobs, pods = listed(stack, "batch/v1", "Job", TEAM), listed(stack, "v1", "Pod", "default")
    if jobs is None or pods is None:
        return ["what the API server has"]
    left = [job["metadata"]["name"] for job in jobs if job.get("status", {}).get("succeeded", 0) < PODS]
    return left + [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") != "Succeeded"]


def details(stack: Stack, name: str) -> Object:
    """Returns the status of a job that does not end, of its Workload in Kueue, and of each pod with its node."""
    kinds = (("batch/v1", "Job"), ("kueue.x-k8s.io/v1beta2", "Workload"), ("v1", "Pod"))
    found = [each for kind in kinds for each in stack.kube.list(*kind) if name in each["metadata"]["name"]]
    return {each["metadata"]["name"]: (each["spec"].get("nodeName"), each.get("status")) for each in found}


def test_no_gang_begins_half(stack: Stack) -> None:
    chance, watch = random.Random(SEED), Watch(stack)  # noqa: S311 - the same arrivals each time
    for number in range(ARRIVALS):
        if number in KILLED:
            assert processes(stack.world.home, KILLED[number])
            kill(processes(stack.world.home, KILLED[number]))
        for obj in arrival(number, chance):
            eventually(partial(is_taken, stack, obj), "it is taken", 120)
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
    assert len(watch.whole) > gangs / 2, "most of them were seen at work"
