"""How workloads fare, as `make up` tells it: whose pods are held up, and what the logs of tests end with."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from diagnosis.report import Report
from simulator import jobs
from simulator.kube.client import ApiError

Object = dict[str, Any]
IMAGE = "dev.azurecr.io/olmo:1"
MISSING = {"reason": "ImagePullBackOff", "message": f"{IMAGE}: not found"}


class Kube:
    """The API server as far as it is asked: objects by kind, and what it answers for each pod's log."""

    def __init__(self, *objects: Object, logs: dict[str, str | ApiError] | None = None) -> None:
        self._objects, self._logs = objects, logs or {}

    def list(self, api_version: str, kind: str, namespace: str) -> list[Object]:
        return [
            obj
            for obj in self._objects
            if (obj["kind"], obj["apiVersion"]) == (kind, api_version) and namespace == "ai"
        ]

    def text(self, path: str, _: Object) -> str:
        answer = self._logs[path.split("/")[-2]]
        if isinstance(answer, ApiError):
            raise answer
        return answer


def obj(kind: str, name: str, owner: str = "", **more: Any) -> Object:
    """An object with its name as its uid."""
    version = {"Pod": "v1", "Job": "batch/v1"}.get(kind, "apps/v1")
    metadata = {"name": name, "namespace": "ai", "uid": name, "ownerReferences": [{"uid": owner}]}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {}, **more}


def waiting(name: str, owner: str) -> Object:
    status = {"containerStatuses": [{"image": IMAGE, "state": {"waiting": MISSING}}]}
    return obj("Pod", name, owner, spec={"nodeName": "a"}, status=status)


def starting(name: str, owner: str) -> Object:
    return obj("Pod", name, owner, spec={"nodeName": "a"})


def observed(kube: Kube, name: str) -> jobs.Workload:
    outputs = {name: {"namespace": "ai", "name": name, "command": "kubectl logs", "why": "python -m why", "ends": True}}
    (found,) = jobs.observe(kube, outputs, Path("no-placements"))  # type: ignore[arg-type]
    return found


def test_the_verdicts_of_a_test_are_told_and_failures_come_first() -> None:
    logs: dict[str, str | ApiError] = {"a": "VERDICT: PASS; a\n", "b": "VERDICT: FAIL; b\n", "c": "training\n"}
    assert _judged(logs).verdicts == ("VERDICT: FAIL; b", "VERDICT: PASS; a")


def test_a_pod_that_is_gone_has_no_verdict() -> None:
    assert _judged({"a": ApiError(404, "NotFound", "pods a not found")}).verdicts == ()


@pytest.mark.parametrize("code", [403, 500])
def test_a_log_that_cannot_be_read_is_no_lack_of_a_verdict(code: int) -> None:
    with pytest.raises(ApiError, match="refused"):
        _judged({"a": ApiError(code, "", "refused")})


def test_a_failed_job_is_told_with_the_commands_that_show_it_and_run_it_again() -> None:
    failed = obj("Job", "olmo", status={"conditions": [{"type": "Failed", "status": "True", "message": "too often"}]})
    assert observed(Kube(failed), "olmo").complaint.splitlines() == [
        "olmo: Failed too often",
        "  look at it:   kubectl logs",
        "  run it again: kubectl delete job -n ai olmo && pulumi up --refresh",
    ]


def test_a_job_that_only_waits_is_told_with_its_cause_and_is_not_to_be_run_again() -> None:
    assert observed(Kube(obj("Job", "olmo"), waiting("olmo-0", "olmo")), "olmo").complaint.splitlines() == [
        "olmo: Pending",
        f"  waits: its registry does not have the image {IMAGE}",
        "    do: kubectl describe pod -n ai olmo-0",
        "        # then push it, or name another in the workload's options",
        "  look at it:   python -m why",
    ]


DONE = obj("Job", "olmo", status={"conditions": [{"type": "Complete", "status": "True"}]})
HELD_UP = Kube(obj("Job", "olmo"), waiting("olmo-0", "olmo"))
STARTING = Kube(obj("Job", "olmo"), starting("olmo-0", "olmo"))


def test_what_alternates_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_POLL_S", 0)
    seen = iter([STARTING, HELD_UP, STARTING, HELD_UP, Kube(DONE)])
    told: list[str] = []
    jobs.wait(lambda: [observed(next(seen), "olmo")], 60, told.append)
    assert [text.splitlines()[:2] for text in told] == [
        ["olmo: Pending"],
        ["olmo: Pending", f"  waits: its registry does not have the image {IMAGE}"],
        ["olmo: Complete"],
    ]


def test_a_missing_image_ends_the_waiting_once_the_kubelet_has_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at its first sight: what `make up` has just pushed, a kubelet finds a few seconds later."""
    clock = iter(range(1000))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock) * 4.0)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    seen = iter([HELD_UP, STARTING, *[HELD_UP] * 4])
    (workload,) = jobs.wait(lambda: [observed(next(seen), "olmo")], 600, lambda _: None)
    assert not workload.settled
    assert not list(seen)


def _judged(logs: dict[str, str | ApiError]) -> jobs.Workload:
    ran_on = tuple((pod, "node") for pod in logs)
    told = Report("health-check", "Complete")
    workload = jobs.Workload("health-check", "ai", "kubectl logs", "", ends=True, report=told, ran_on=ran_on)
    return jobs.judged(Kube(logs=logs), workload)  # type: ignore[arg-type]
