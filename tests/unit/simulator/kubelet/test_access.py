from __future__ import annotations

from pathlib import Path
from typing import cast

from k8s.objects import Object
from simulator.host.network import ClusterNetwork
from simulator.kubelet.access import PodAccess
from simulator.kubelet.programs import OneShot
from simulator.kubelet.runner import Runnable
from tests.support.case_files import case_table
from tests.unit.simulator.kubelet.pods import make

RUNS = OneShot(lambda context: None)
INIT: Object = {"name": "first", "image": "own"}
SIDECAR: Object = {"name": "sidecar", "image": "foreign"}


def answered(pod: Object | None, container: str = "main", program: Runnable = RUNS) -> tuple[int, str]:
    """The sidecar has no program."""
    access = PodAccess(
        Path("nowhere"),
        cast(ClusterNetwork, None),
        lambda namespace, name: pod,
        lambda found: None if found is SIDECAR else program,
    )
    return access.why_no_log("ai", "train-0", container)


def in_state(state: Object) -> Object:
    pod = make()
    pod["status"]["containerStatuses"] = [{"name": "main", "state": state}]
    return pod


@case_table(__file__, "waiting")
def test_a_container_that_will_run_is_waiting_to_start(state: Object, why: str) -> None:
    text = f'container "main" in pod "train-0" is waiting to start: {why}'
    assert answered(in_state(state)) == (400, text)


def test_a_new_pod_is_waiting_to_start() -> None:
    assert answered(make()) == (400, 'container "main" in pod "train-0" is waiting to start: ContainerCreating')
    assert answered(make(init=(INIT,)), "first")[0] == 400
    assert answered(None) == (400, 'pod "train-0" cannot be found - no logs available')


def test_a_container_without_a_program_runs_no_process() -> None:
    assert answered(make(), program=None) == (
        200,
        "The simulator runs no process for container main; KWOK stubs its pod.\n",
    )
    beside = make()
    beside["spec"]["containers"].append(SIDECAR)
    assert answered(beside, "sidecar") == (200, "The simulator runs no process for container sidecar; it is stubbed.\n")
