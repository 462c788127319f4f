"""How a pod that the simulator runs ends: deleted, while it waits or runs, or with its machine."""

from __future__ import annotations

import threading

import pytest

from simulator.kubelet import folders
from simulator.kubelet.logs import logs_in
from simulator.kubelet.programs import HostProcess, PodContext
from simulator.kubelet.runner import Stop, run
from tests.support.waiting import eventually
from tests.unit.simulator.kubelet.cluster import Cluster
from tests.unit.simulator.kubelet.pods import CLAIMED, context, make, start, status, waiting, write_weights

IMAGE = "dev.azurecr.io/olmo:1"


def test_a_pod_that_waits_ends_when_it_is_deleted(cluster: Cluster) -> None:
    cluster.azure.refused[IMAGE] = "not found"
    done = threading.Event()
    worker = start(cluster, make(), lambda ctx: done.set())
    eventually(lambda: waiting(cluster).get("reason") == "ErrImagePull")
    worker.stop(delete=True)
    worker.join()
    assert cluster.kube.find("v1", "Pod", "train-0", "ai") is None
    assert not done.is_set()


def test_a_pod_that_is_deleted_tells_how_it_ended_first(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Job holds its pods by a finalizer until it knows, and starts another in their place only then."""
    phases: list[str] = []
    monkeypatch.setattr(cluster.kube, "delete", lambda *_, **__: phases.append(status(cluster)["phase"]))
    running, stop = threading.Event(), Stop()

    def run(_: PodContext) -> None:
        running.set()
        stop.wait(10)
        raise RuntimeError("terminated")

    worker = start(cluster, make(), run)
    assert running.wait(10)
    worker.stop(delete=True)
    stop.set()
    worker.join()
    assert phases == ["Failed"]


def test_with_its_machine_a_pod_is_gone_at_once_and_nothing_of_it_is_sent(cluster: Cluster) -> None:
    wrote, ended = threading.Event(), threading.Event()

    def run(ctx: PodContext) -> None:
        write_weights(ctx, "/data/half")
        wrote.set()
        ended.wait(10)

    pod = make(volumes=(CLAIMED,), volumeMounts=[{"name": "data", "mountPath": "/data"}])
    worker = start(cluster, pod, run)
    assert wrote.wait(10)
    worker.lose()
    ended.set()
    worker.join()
    assert cluster.azure.container.text() == {}
    assert status(cluster)["phase"] == "Running", "nobody is left to tell"


@pytest.mark.parametrize("asked_before", [False, True])
def test_a_process_has_no_grace_once_its_machine_is_gone(cluster: Cluster, *, asked_before: bool) -> None:
    pod = make()
    pod["spec"]["terminationGracePeriodSeconds"] = 600
    ctx, stop = context(cluster, pod, pod["spec"]["containers"][0]), Stop()
    stubborn = "trap 'echo asked' TERM; echo up; while true; do sleep 0.1; done"
    program = HostProcess(lambda _: ["bash", "-c", stubborn])
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(run(ctx, program, stop, lambda: None)))
    thread.start()
    log = folders.logs_of(cluster.folder, pod) / "main"
    eventually(lambda: "up" in "".join(file.read_text() for file in logs_in(log)))
    if asked_before:
        stop.set()
        eventually(lambda: "asked" in "".join(file.read_text() for file in logs_in(log)))
    stop.lost.set()
    stop.set()
    thread.join(20)
    assert codes == [128 + 9]


@pytest.mark.parametrize(("policy", "shown"), [("FallbackToLogsOnError", True), ("File", False)])
def test_the_end_of_the_log_is_the_termination_message_if_the_pod_asks_for_it(
    cluster: Cluster, policy: str, shown: bool
) -> None:
    def fail(ctx: PodContext) -> None:
        for number in range(1000):
            ctx.log(f"line {number}")
        raise OSError("the cause")

    start(cluster, make(terminationMessagePolicy=policy), fail).join()
    ended = status(cluster)["containerStatuses"][0]["state"]["terminated"]
    message = ended.get("message", "")
    assert (ended["exitCode"], "the cause" in message, "line 999" in message) == (1, shown, shown)
    assert len(message) <= 2048
