from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from k8s.objects import Object
from simulator.kube.client import STRATEGIC_MERGE_PATCH, ApiError
from simulator.kubelet import folders
from simulator.kubelet.context import ContainerContext
from simulator.kubelet.logs import logs_in
from simulator.kubelet.programs import HostProcess, PodContext
from simulator.kubelet.runner import STUBBED_S, Stop, run
from tests.support.waiting import eventually
from tests.unit.simulator.kubelet.cluster import Cluster
from tests.unit.simulator.kubelet.pods import CLAIMED, context, make, start, status, waiting, write_weights

IMAGE = "dev.azurecr.io/olmo:1"


def test_waits_for_the_volume_then_for_the_image_then_runs(cluster: Cluster) -> None:
    cluster.azure.refused[IMAGE] = "not found"
    cluster.pods = []  # no driver yet
    pod = make(volumes=(CLAIMED,), volumeMounts=[{"name": "data", "mountPath": "/data"}])
    worker = start(cluster, pod, lambda ctx: None)
    eventually(lambda: "driver name blob.csi.azure.com not found" in waiting(cluster).get("message", ""))
    assert waiting(cluster)["reason"] == "ContainerCreating"
    assert cluster.azure.asked == []
    cluster.pods = Cluster(cluster.folder).pods
    eventually(lambda: waiting(cluster).get("reason") == "ErrImagePull")
    assert status(cluster)["phase"] == "Pending"
    cluster.azure.refused = {}
    worker.join()
    assert status(cluster)["phase"] == "Succeeded"
    assert {event["reason"] for event in cluster.kube.list("v1", "Event")} >= {"FailedMount", "Failed"}


def test_a_missing_secret_in_the_environment_is_a_configuration_error(cluster: Cluster) -> None:
    reference = {"secretKeyRef": {"name": "jupyter", "key": "password"}}
    pod = make(env=[{"name": "PASSWORD", "valueFrom": reference}])
    worker = start(cluster, pod, lambda ctx: None)
    eventually(lambda: waiting(cluster).get("reason") == "CreateContainerConfigError")
    assert waiting(cluster)["message"] == 'secret "jupyter" not found'
    worker.stop(delete=False)
    worker.join()


def test_uploads_files_before_the_container_has_ended(cluster: Cluster) -> None:
    seen: list[dict[str, str]] = []
    original = cluster.kube.patch

    def patch(*arguments: Any, **named: Any) -> Object:
        if arguments[-1].get("status", {}).get("phase") == "Succeeded":
            seen.append(cluster.azure.container.text())
        return original(*arguments, **named)

    cluster.kube.patch = patch  # type: ignore[method-assign]
    pod = make(volumes=(CLAIMED,), volumeMounts=[{"name": "data", "mountPath": "/data"}])
    start(cluster, pod, lambda ctx: write_weights(ctx, "/data/step10")).join()
    assert seen == [{"step10": "weights"}]


UNAVAILABLE = ApiError(500, "InternalError", "rpc error: code = Unavailable desc = transport is closing")
FORBIDDEN = ApiError(403, "Forbidden", "pods is forbidden")


@pytest.mark.parametrize(
    ("refusals", "phase"),
    [
        (
            [httpx.ConnectError("connection refused"), UNAVAILABLE, ApiError(429, "TooManyRequests", "later")],
            "Succeeded",
        ),
        ([FORBIDDEN], "Running"),
    ],
)
def test_reports_the_end_once_the_api_server_answers_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, refusals: list[Exception], phase: str
) -> None:
    original, left = cluster.kube.patch, iter(refusals)

    def patch(*arguments: Any, **named: Any) -> Object:
        if arguments[-1].get("status", {}).get("phase") == "Succeeded":
            for refusal in left:
                raise refusal
        return original(*arguments, **named)

    monkeypatch.setattr(cluster.kube, "patch", patch)
    start(cluster, make(), lambda ctx: None).join()
    assert status(cluster)["phase"] == phase


def test_a_failed_init_container_fails_the_pod(cluster: Cluster) -> None:
    ran: list[str] = []

    def run(ctx: PodContext) -> None:
        ran.append(ctx.container["name"])
        raise RuntimeError("no disks")

    pod = make(init=({"name": "prepare", "image": IMAGE},))
    start(cluster, pod, run).join()
    assert ran == ["prepare"]
    assert status(cluster)["phase"] == "Failed"


def test_an_init_container_without_a_program_starts_and_ends_at_the_same_time(cluster: Cluster) -> None:
    """The API server rejects an empty time."""
    pod = make(init=({"name": "wait", "image": "alpine:3.10"},))
    start(cluster, pod, lambda ctx: None, knows=lambda container: container["image"] == IMAGE).join()
    (wait,) = status(cluster)["initContainerStatuses"]
    assert wait["state"]["terminated"]["startedAt"] == wait["state"]["terminated"]["finishedAt"] != ""
    assert status(cluster)["phase"] == "Succeeded"


@pytest.mark.parametrize("of_job", [True, False])
def test_a_container_without_a_program_ends_only_in_a_job(cluster: Cluster, *, of_job: bool) -> None:
    pod = make(init=({"name": "prepare", "image": IMAGE},), image="docker.io/me/mine:1")
    pod["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "train", "uid": "train"}] if of_job else []
    ran: list[str] = []
    known = lambda container: container["name"] == "prepare"  # noqa: E731
    worker = start(cluster, pod, lambda ctx: ran.append(ctx.container["name"]), known)
    eventually(lambda: status(cluster)["phase"] == ("Succeeded" if of_job else "Running"))
    if not of_job:
        time.sleep(2 * STUBBED_S)
        assert worker.alive
        assert status(cluster)["phase"] == "Running"
        worker.stop(delete=False)
    worker.join()
    assert ran == ["prepare"]


def test_a_crashing_container_backs_off(cluster: Cluster) -> None:
    def fail(ctx: PodContext) -> None:
        raise RuntimeError("no disks")

    pod = make()
    pod["spec"]["restartPolicy"] = "Always"
    worker = start(cluster, pod, fail)
    eventually(lambda: waiting(cluster).get("reason") == "CrashLoopBackOff")
    container = status(cluster)["containerStatuses"][0]
    assert container["restartCount"] == 1  # the first restart is immediate
    assert container["lastState"]["terminated"]["exitCode"] == 1
    assert status(cluster)["phase"] == "Running"
    worker.stop(delete=False)
    worker.join()


def test_retries_errors_of_the_api_server(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    original, refusals = ContainerContext.env, iter([httpx.ConnectError("connection refused"), OSError("disk full")])

    def env(ctx: ContainerContext) -> Mapping[str, str]:
        for refusal in refusals:
            raise refusal
        return original(ctx)

    monkeypatch.setattr(ContainerContext, "env", env)
    start(cluster, make(), lambda ctx: None).join()
    assert status(cluster)["phase"] == "Succeeded"


def test_an_event_that_cannot_be_recorded_does_not_stop_the_pod(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Object] = []

    def create(event: Object) -> Object:
        asked.append(event)
        cluster.azure.refused = {}
        raise httpx.ConnectError("connection refused")

    monkeypatch.setattr(cluster.kube, "create", create)
    cluster.azure.refused[IMAGE] = "not found"
    start(cluster, make(), lambda ctx: None).join()
    assert asked[0]["reason"] == "Failed"
    assert status(cluster)["phase"] == "Succeeded"


def test_a_running_container_sees_its_config_map_change(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulator.kubelet.worker._REFRESH_S", 0.05)
    stored: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf", "namespace": "ai"}}
    cluster.has(stored | {"data": {"actions": "enqueue"}})
    volume: Object = {"name": "conf", "configMap": {"name": "conf"}}
    pod = make(volumes=(volume,), volumeMounts=[{"name": "conf", "mountPath": "/conf"}])

    def run(ctx: PodContext) -> None:
        path = Path(ctx.host_path("/conf/actions"))
        assert path.read_text() == "enqueue"
        cluster.has(stored | {"data": {"actions": "allocate"}})
        eventually(lambda: path.read_text() == "allocate")

    start(cluster, pod, run).join()
    assert status(cluster)["phase"] == "Succeeded"


def test_a_condition_keeps_its_time_while_it_stays(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    times = (f"2026-01-01T00:00:{second:02}Z" for second in itertools.count())
    monkeypatch.setattr("simulator.kubelet.status.now", lambda: next(times))
    start(cluster, make(), lambda ctx: None).join()
    since = {entry["type"]: entry["lastTransitionTime"] for entry in status(cluster)["conditions"]}
    assert since["PodScheduled"] < since["Ready"]


def test_keeps_conditions_of_other_controllers(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Job needs DisruptionTarget, which a merge patch would remove."""
    kinds: list[str] = []
    original = cluster.kube.patch

    def patch(*arguments: Any, **named: Any) -> Object:
        kinds.append(named["content_type"])
        return original(*arguments, **named)

    monkeypatch.setattr(cluster.kube, "patch", patch)
    start(cluster, make(), lambda ctx: None).join()
    assert set(kinds) == {STRATEGIC_MERGE_PATCH}


# -- the end ----------------------------------------------------------------------------------------------------------


def test_a_waiting_pod_ends_when_it_is_deleted(cluster: Cluster) -> None:
    cluster.azure.refused[IMAGE] = "not found"
    done = threading.Event()
    worker = start(cluster, make(), lambda ctx: done.set())
    eventually(lambda: waiting(cluster).get("reason") == "ErrImagePull")
    worker.stop(delete=True)
    worker.join()
    assert cluster.kube.find("v1", "Pod", "train-0", "ai") is None
    assert not done.is_set()


def test_a_deleted_pod_reports_its_end_first(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Job keeps its pods with a finalizer until it knows their end, before it replaces them."""
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


def test_a_pod_of_a_lost_machine_uploads_and_reports_nothing(cluster: Cluster) -> None:
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
    assert status(cluster)["phase"] == "Running"


@pytest.mark.parametrize("asked_before", [False, True])
def test_a_process_on_a_lost_machine_has_no_grace_period(cluster: Cluster, *, asked_before: bool) -> None:
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
def test_the_end_of_the_log_is_the_termination_message_under_its_policy(
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
