from __future__ import annotations

from typing import Any

import pytest

from config.data.content_tags import content_tag
from diagnosis.cluster import Kind
from diagnosis.finding import Finding
from k8s.objects import Object
from tests.unit.diagnosis import objects as make

HOST = "stack4082.azurecr.io"
OWN = f"{HOST}/olmo:{content_tag('olmo')}"
NOT_FOUND = 'failed to pull and unpack image "{0}": failed to resolve reference "{0}": {0}: not found'


def found(pod: tuple[Kind, Object], *more: tuple[Kind, Object]) -> list[Finding]:
    return list(make.diagnosed(make.job(), pod, *more).findings)


def on_node(reason: str, message: str = "", **status: Any) -> tuple[Kind, Object]:
    return make.pod("train-0", owner="train", on="a", **make.waiting(reason, message, OWN), **status)


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff"])
def test_a_missing_image_shows_the_command_that_pushes_it(reason: str) -> None:
    (image,) = found(on_node(reason, f"Back-off pulling: {NOT_FOUND.format(OWN)}"))
    assert image.why == f"its registry does not have the image {OWN}"
    assert image.fix == f"make images REGISTRY={HOST}    # on the simulator: make images"
    assert image.lasts


@pytest.mark.parametrize("own", [f"{HOST}/olmo:mine", f"{HOST}/team/olmo:1", "docker.io/library/nothing:1"])
def test_a_missing_image_of_the_user(own: str) -> None:
    (image,) = found(
        make.pod("train-0", owner="train", on="a", **make.waiting("ErrImagePull", NOT_FOUND.format(own), own))
    )
    rest = "then push it, or name another image in the pod's spec or workloadOptions"
    assert image.fix == f"kubectl describe pod -n ai train-0    # {rest}"
    assert image.lasts


@pytest.mark.parametrize(("reason", "verb"), [("Evicted", "ended"), ("Terminated", "ended"), ("OutOfcpu", "rejected")])
def test_a_node_rejects_some_pods_and_ends_others(reason: str, verb: str) -> None:
    pod = make.pod("train-0", owner="train", on="a", phase="Failed", reason=reason, message="why")
    assert found(pod)[0].why == f"node a {verb} pod train-0: {reason}: why"


def state(name: str, restarts: int = 0, last: int | None = None, **state: Object) -> Object:
    """The container ended before with exit code `last`."""
    before = {} if last is None else {"lastState": {"terminated": {"exitCode": last}}}
    return {"name": name, "image": OWN, "restartCount": restarts, "state": state, **before}


RUNS: Object = {"running": {}}
ENDED: Object = {"terminated": {"exitCode": 1}}
WAITS: Object = {"waiting": {"reason": "PodInitializing"}}


@pytest.mark.parametrize(
    ("statuses", "why"),
    [
        (
            {"own": [state("main", 7, 137, **RUNS)]},
            "container main runs again after 7 restarts; it ended with exit code 137",
        ),
        (
            {"own": [state("main", **ENDED), state("proxy", **RUNS)]},
            "container main has ended (exit code 1), but the pod ends only when proxy ends",
        ),
        (
            {"own": [state("main", **WAITS)], "init": [state("get", 1, 2, **RUNS)]},
            "container get runs again after 1 restart; it ended with exit code 2",
        ),
    ],
)
def test_a_container_that_ended_explains_a_pod_that_is_not_ready(statuses: dict[str, Any], why: str) -> None:
    status = {"containerStatuses": statuses["own"], "initContainerStatuses": statuses.get("init", [])}
    (finding,) = found(make.pod("train-0", owner="train", on="a", phase="Running", **status))
    assert finding.why == f"pod train-0: {why}"
    assert not finding.passing


@pytest.mark.parametrize("kind", ["liveness", "startup"])
def test_shows_the_probe_that_ends_a_container(kind: str) -> None:
    pod = on_node("CrashLoopBackOff", "back-off 10s")
    pod[1]["status"]["containerStatuses"][0]["name"] = "main"
    events = [
        make.event(pod, "Unhealthy", f"{kind.title()} probe failed: no answer", "2026-11-22T10:01:00Z"),
        make.event(pod, "Killing", f"Container main failed {kind} probe, will be restarted", "2026-11-22T10:02:00Z"),
    ]
    reason = f"since it failed its {kind} probe ({kind.title()} probe failed: no answer)"
    assert found(pod, *events)[0].why == f"pod train-0: CrashLoopBackOff: back-off 10s: the kubelet killed it, {reason}"


def test_reports_a_shared_cause_once() -> None:
    pods = []
    for number in range(3):
        text = f"back-off {number}m0s restarting failed container=main pod=train-{number}_ai"
        pods.append(
            make.pod(f"train-{number}", owner="train", on=f"n{number}", **make.waiting("CrashLoopBackOff", text, OWN))
        )
    other = make.pod("train-3", owner="train", on="a", **make.waiting("CrashLoopBackOff", "another", OWN))
    assert [each.why for each in found(*pods, other)] == [
        "pod train-0: CrashLoopBackOff: back-off 0m0s restarting failed container=main pod=train-0_ai; "
        "2 other pods have the same problem",
        "pod train-3: CrashLoopBackOff: another",
    ]
