"""A thousand AppWrappers are admitted as fast as with the released configuration.

Two clusters that differ only in this configuration take turns, so that other load affects both. A turn ends with its
jobs, because they would slow the other cluster. AppWrapper's client, limited to 20 requests per second, takes most
time: the test prints all times, but asserts only admission.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import yaml

from config.data.scheduling import COSCHEDULER, WRAPPER_NAMESPACE
from config.schema.operators import MLBATCH_NAMESPACE
from k8s.objects import Object, holds
from operators.kueue import admission
from operators.kueue.queues import API
from simulator.host.paths import ROOT
from simulator.kube.informer import Informer
from tests.e2e.team_jobs import QUEUED, kubectl
from tests.support.manifests import manifest
from tests.support.world import Stack, eventually, names

pytestmark = [pytest.mark.simulator, pytest.mark.long, pytest.mark.alone, pytest.mark.timeout(3600)]
TURNS, COUNT, FEW, AT_ONCE = 5, 200, 20, 8
APART = 1.1
WRAPPERS, TEAM = "workload.codeflare.dev/v1beta2", "blue"
OPERATOR = "deployment/appwrapper-controller-manager"
OURS, RELEASED = "ours", "released"
AS_RELEASED = """
from operators._lib.manifests import Changes
from operators import appwrapper
from operators import kueue
from operators.kueue import admission, queues

appwrapper.Changes = lambda *_, **__: Changes()
values, cluster_queue_spec = kueue.values, queues.cluster_queue_spec
kueue.values = lambda *given, **more: {"controllerManager": values(*given, **more)["controllerManager"]}
queues.cluster_queue_spec = lambda *given: {
    key: value for key, value in cluster_queue_spec(*given).items() if key in ("namespaceSelector", "resourceGroups")
}
admission.policies = lambda *_: {}
"""
"""Code for the released manifests and chart values, a queue without a cohort, and no admission policies."""


@pytest.fixture(scope="module")
def stacks(new_stack: Callable[..., Stack]) -> dict[str, Stack]:
    off = ("gpuOperator", "networkOperator", "nodeFeatureDiscovery", "nodeLabeler")
    operators: dict[str, Any] = {
        "appwrapper": {"enabled": True},
        "kueue": {"enabled": True},
        "scheduler": COSCHEDULER,
        **dict.fromkeys(off, {"enabled": False}),
    }
    made = {}
    for name, alteration in {OURS: "", RELEASED: AS_RELEASED}.items():
        size, teams = {"vmSku": "Standard_NC4as_T4_v3", "nodeCount": 1}, {TEAM: {"gpus": 1}}
        made[name] = new_stack(name, workloads="", **size, operators=operators, teams=teams)
        made[name].alter(alteration)
        made[name].up()
    return made


def wrapper(name: str) -> Object:
    """Returns an AppWrapper of a Job with a small pod, which ends after a second without a process."""
    limits = {"cpu": "10m", "memory": "16Mi"}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"limits": limits}}
    pod = {"restartPolicy": "Never", "containers": [container]}
    job = manifest("batch/v1", "Job", name, spec={"template": {"spec": pod}})
    return manifest(WRAPPERS, "AppWrapper", name, TEAM, labels=QUEUED, spec={"components": [{"template": job}]})


def is_admitted(workload: Object) -> bool:
    return holds(workload, "Admitted")


def has_started(wrapper: Object) -> bool:
    return phase(wrapper) in ("Running", "Succeeded")


def has_ended(wrapper: Object) -> bool:
    return phase(wrapper) == "Succeeded"


def phase(wrapper: Object) -> str:
    return str(wrapper.get("status", {}).get("phase", ""))


class Measured:
    def __init__(self, stack: Stack) -> None:
        self._kube, self._made = stack.kube, 0
        self._workloads = Informer(stack.kube, API, "Workload", lambda: None)
        self._wrappers = Informer(stack.kube, WRAPPERS, "AppWrapper", lambda: None)

    def turn(self, count: int) -> dict[str, float]:
        """Returns the seconds until all are created, admitted, running and ended."""
        more = [wrapper(f"job-{number}") for number in range(self._made, self._made + count)]
        self._made += count
        begun, seconds = time.monotonic(), {}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self._kube.create, more))
        seconds["created"] = time.monotonic() - begun
        for state, informer, is_so in (
            ("admitted", self._workloads, is_admitted),
            ("running", self._wrappers, has_started),
            ("ended", self._wrappers, has_ended),
        ):
            eventually(partial(self._all, informer, is_so), f"all of {count} are {state}", 600)
            seconds[state] = time.monotonic() - begun
        return seconds

    def _all(self, informer: Informer, is_so: Callable[[Object], bool]) -> bool:
        return sum(map(is_so, informer.items())) == self._made

    def stop(self) -> None:
        for informer in (self._workloads, self._wrappers):
            informer.stop()


@pytest.fixture
def sides(stacks: dict[str, Stack]) -> Iterator[dict[str, Measured]]:
    made = {name: Measured(stack) for name, stack in stacks.items()}
    yield made
    for side in made.values():
        side.stop()


def test_the_other_cluster_has_the_released_configuration(stacks: dict[str, Stack]) -> None:
    values = yaml.safe_load(Path(ROOT, "simulator", "charts", "kueue", "values.yaml").read_text())
    released = yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"])
    kube = stacks[RELEASED].kube
    config = kube.get("v1", "ConfigMap", "kueue-manager-config", MLBATCH_NAMESPACE)["data"]
    has = yaml.safe_load(config["controller_manager_config.yaml"])
    assert {key: has[key] for key in released} == released
    assert '"userRBACAdmissionCheck":true' in kubectl(stacks[RELEASED], "logs", "-n", WRAPPER_NAMESPACE, OPERATOR)
    policies = "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"
    ours, theirs = (set(names(stacks[name].kube.list(*policies))) for name in (OURS, RELEASED))
    assert ours - theirs == {admission.QUEUES, admission.PODS, admission.SERVICES, admission.HOPELESS}


def test_a_thousand_are_admitted_as_fast_as_with_the_released_configuration(
    sides: dict[str, Measured], capsys: pytest.CaptureFixture[str]
) -> None:
    for side in sides.values():
        side.turn(FEW)
    turns: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for _ in range(TURNS):
        for name, side in sides.items():
            turns[name].append(side.turn(COUNT))
    ours, released = (median(each["admitted"] for each in turns[name]) for name in (OURS, RELEASED))
    with capsys.disabled():
        for name, found in turns.items():
            times = (f"{state} {', '.join(f'{each[state]:.1f}' for each in found)}" for state in found[0])
            print(f"\n{name}, seconds by turn: {'; '.join(times)}", end="")
        print(f"\nratio of the medians until admitted: {ours / released:.2f}")
    assert ours <= APART * released
