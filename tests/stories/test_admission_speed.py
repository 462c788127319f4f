"""What teams get besides costs no speed: a thousand AppWrappers are admitted as fast as Kueue and AppWrapper, each with
the configuration that it is released with, admit them.

Two clusters, which differ in nothing but that, take turns, a hundred at a time: so whatever else the machine does meets
both, and the median turn of each counts. A turn is over when Kueue has nothing left to do; AppWrapper, whose client is
held to 20 requests a second, works on all the while in both. When all are running is told, and not judged.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import yaml

from config.facts.scheduling import COSCHEDULER
from config.schema.operators import MLBATCH_NAMESPACE
from diagnosis.cluster import Object, condition
from operators.appwrapper.component import NAMESPACE
from operators.kueue import admission
from operators.kueue.queues import API
from simulator.host.paths import ROOT
from simulator.kube.informer import Informer
from tests.stories.team_jobs import QUEUED, kubectl
from tests.support.world import Stack, eventually, names

pytestmark = [pytest.mark.simulator, pytest.mark.long, pytest.mark.alone, pytest.mark.timeout(3600)]
TURNS, COUNT, AT_ONCE = 10, 100, 8
APART = 1.1
WRAPPERS, TEAM = "workload.codeflare.dev/v1beta2", "blue"
OPERATOR = "deployment/appwrapper-controller-manager"
TOOLS = "kueue-manager,scheduler-plugins-scheduler,scheduler-plugins-controller,appwrapper-manager"
OURS, RELEASED = "ours", "released"
AS_RELEASED = """
from operators._manifests import Changes
from operators.appwrapper import component as appwrapper
from operators.kueue import admission, component as kueue, queues

appwrapper.Changes = lambda _: Changes()
values, cluster_queue_spec = kueue.values, queues.cluster_queue_spec
kueue.values = lambda *given, **more: {"controllerManager": values(*given, **more)["controllerManager"]}
queues.cluster_queue_spec = lambda *given: {
    key: value for key, value in cluster_queue_spec(*given).items() if key in ("namespaceSelector", "resourceGroups")
}
admission.policies = lambda _: {}
"""
"""Manifests and the chart's configuration as they are, a queue in no cohort, and nothing refused."""


@pytest.fixture(scope="module")
def stacks(new_stack: Callable[..., Stack]) -> dict[str, Stack]:
    """Five nodes of one GPU each, whose quota has room for the pods of all jobs. Drivers play no part."""
    subprocess.run([sys.executable, "-m", "simulator.tools", "--only", TOOLS], check=True)
    off = ("gpuOperator", "networkOperator", "nodeFeatureDiscovery", "nodeLabeler")
    operators: dict[str, Any] = {
        "appwrapper": {"enabled": True},
        "kueue": {"enabled": True},
        "scheduler": COSCHEDULER,
        **dict.fromkeys(off, {"enabled": False}),
    }
    made = {}
    for name, alteration in {OURS: "", RELEASED: AS_RELEASED}.items():
        size, teams = {"vmSku": "Standard_NC4as_T4_v3", "nodeCount": 5}, {TEAM: {"gpus": 5}}
        made[name] = new_stack(name, workloads="", **size, operators=operators, teams=teams)
        made[name].alter(alteration)
        made[name].up()
    return made


def wrapper(name: str) -> Object:
    """Of a Job of one small pod, for which the simulator runs nothing: it ends after a second."""
    limits = {"cpu": "10m", "memory": "16Mi"}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"limits": limits}}
    pod = {"restartPolicy": "Never", "containers": [container]}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": {"spec": pod}}}
    return {
        "apiVersion": WRAPPERS,
        "kind": "AppWrapper",
        "metadata": {"name": name, "namespace": TEAM, "labels": QUEUED},
        "spec": {"components": [{"template": job}]},
    }


def is_admitted(workload: Object) -> bool:
    return condition(workload, "Admitted").get("status") == "True"


def is_started(wrapper: Object) -> bool:
    """By Kueue: it may be a while until AppWrapper sees to it."""
    return not wrapper["spec"].get("suspend")


def is_running(wrapper: Object) -> bool:
    """Or was."""
    return wrapper.get("status", {}).get("phase") in ("Running", "Succeeded")


class Side:
    """One of the clusters, with what is seen of it, and the seconds that its turns took."""

    def __init__(self, stack: Stack) -> None:
        self._kube = stack.kube
        self._workloads = Informer(stack.kube, API, "Workload", lambda: None)
        self._wrappers = Informer(stack.kube, WRAPPERS, "AppWrapper", lambda: None)
        self.begun, self.made = time.monotonic(), 0
        self.created: list[float] = []
        self.admitted: list[float] = []

    def turn(self) -> None:
        """So many more, by so many threads."""
        more = [wrapper(f"job-{number}") for number in range(self.made, self.made + COUNT)]
        self.made += COUNT
        begun = time.monotonic()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self._kube.create, more))
        self.created.append(time.monotonic() - begun)
        self._all(self._workloads, is_admitted)
        self.admitted.append(time.monotonic() - begun)
        self._all(self._wrappers, is_started)

    def runs(self) -> bool:
        return self._count(self._wrappers, is_running) == self.made

    def stop(self) -> None:
        for seen in (self._workloads, self._wrappers):
            seen.stop()

    def _all(self, seen: Informer, so: Callable[[Object], bool]) -> None:
        eventually(lambda: self._count(seen, so) == self.made, f"{so.__name__}: all {self.made}", 600)

    def _count(self, seen: Informer, so: Callable[[Object], bool]) -> int:
        return sum(map(so, seen.items()))


@pytest.fixture
def sides(stacks: dict[str, Stack]) -> Iterator[dict[str, Side]]:
    made = {name: Side(stack) for name, stack in stacks.items()}
    yield made
    for side in made.values():
        side.stop()


def test_the_other_cluster_has_what_is_released(stacks: dict[str, Stack]) -> None:
    values = yaml.safe_load(Path(ROOT, "simulator", "charts", "kueue", "values.yaml").read_text())
    released = yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"])
    kube = stacks[RELEASED].kube
    config = kube.get("v1", "ConfigMap", "kueue-manager-config", MLBATCH_NAMESPACE)["data"]
    has = yaml.safe_load(config["controller_manager_config.yaml"])
    assert {key: has[key] for key in released} == released
    assert '"userRBACAdmissionCheck":true' in kubectl(stacks[RELEASED], "logs", "-n", NAMESPACE, OPERATOR)
    policies = "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"
    ours, theirs = (set(names(stacks[name].kube.list(*policies))) for name in (OURS, RELEASED))
    assert ours - theirs == {admission.QUEUES, admission.PODS}


def test_a_thousand_are_admitted_as_fast_as_by_what_is_released(
    sides: dict[str, Side], capsys: pytest.CaptureFixture[str]
) -> None:
    """The first turn of each does not count."""
    for _ in range(1 + TURNS):
        for side in sides.values():
            side.turn()
    running: dict[str, float] = {}

    def run() -> bool:
        done = {name: time.monotonic() - side.begun for name, side in sides.items() if side.runs()}
        running.update(done | running)
        return len(running) == len(sides)

    eventually(run, "all of them run", 1500, every=1)
    ours, released = (median(sides[name].admitted[1:]) for name in (OURS, RELEASED))
    with capsys.disabled():
        for name, side in sides.items():
            created, admitted = sum(side.created[1:]), sum(side.admitted[1:])
            print(f"\n{name}: created {created:.1f}, admitted {admitted:.1f}, all running {running[name]:.0f} s")
            print(f"  turns: {', '.join(f'{each:.1f}' for each in side.admitted)}")
        print(f"ratio of the medians: {ours / released:.2f}")
    assert ours <= APART * released
