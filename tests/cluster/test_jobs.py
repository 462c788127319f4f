"""How workloads fare, as `make up` tells it: whose pods are held up, and what the logs of tests end with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simulator import jobs
from simulator.kube.client import ApiError

Object = dict[str, Any]
MISSING = {"reason": "ImagePullBackOff", "message": "no such image"}


class Kube:
    """The API server as far as it is asked: objects by kind, and what it answers for each pod's log."""

    def __init__(self, *objects: Object, logs: dict[str, str | ApiError] | None = None) -> None:
        self._objects, self._logs = objects, logs or {}

    def find(self, _: str, kind: str, name: str, namespace: str) -> Object | None:
        return next((obj for obj in self.list(_, kind, namespace) if obj["metadata"]["name"] == name), None)

    def list(self, _: str, kind: str, namespace: str) -> list[Object]:
        return [obj for obj in self._objects if (obj["kind"], namespace) == (kind, "ai")]

    def text(self, path: str, _: Object) -> str:
        answer = self._logs[path.split("/")[-2]]
        if isinstance(answer, ApiError):
            raise answer
        return answer


def obj(kind: str, name: str, owner: str = "", **more: Any) -> Object:
    """An object with its name as its uid."""
    return {"kind": kind, "metadata": {"name": name, "uid": name, "ownerReferences": [{"uid": owner}]}, **more}


def waiting(name: str, owner: str) -> Object:
    return obj("Pod", name, owner, status={"containerStatuses": [{"state": {"waiting": MISSING}}]})


def observed(kube: Kube, name: str) -> jobs.Workload:
    outputs = {name: {"namespace": "ai", "name": name, "command": "kubectl logs", "ends": True}}
    (found,) = jobs.observe(kube, outputs, Path("no-placements"))  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(
    "objects",
    [
        (obj("Job", "olmo"), waiting("olmo-0", "olmo")),
        (obj("Deployment", "olmo"), obj("ReplicaSet", "olmo-1", "olmo"), waiting("olmo-1-x", "olmo-1")),
    ],
)
def test_a_workload_says_why_its_pods_are_held_up(objects: tuple[Object, ...]) -> None:
    found = observed(Kube(*objects), "olmo")
    assert (found.phase, found.message) == ("Pending", "ImagePullBackOff: no such image")


def test_pods_of_another_workload_whose_name_begins_alike_hold_nothing_up() -> None:
    others = (obj("Job", "olmo-data"), waiting("olmo-data-x", "olmo-data"))
    assert observed(Kube(obj("Job", "olmo"), *others), "olmo").message == ""


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
        "olmo is Failed: too often",
        "  look at it:   kubectl logs",
        "  run it again: kubectl delete vcjob -n ai olmo && pulumi up --refresh",
    ]


def test_a_job_that_only_waits_is_not_to_be_run_again() -> None:
    assert observed(Kube(obj("Job", "olmo")), "olmo").complaint == "olmo is Pending\n  look at it:   kubectl logs"


def test_what_alternates_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_POLL_S", 0)
    held_up = (obj("Job", "olmo"), waiting("olmo-0", "olmo"))
    done = obj("Job", "olmo", status={"conditions": [{"type": "Complete", "status": "True"}]})
    seen = iter([Kube(obj("Job", "olmo")), Kube(*held_up), Kube(obj("Job", "olmo")), Kube(*held_up), Kube(done)])
    told: list[str] = []
    jobs.wait(lambda: [observed(next(seen), "olmo")], 60, told.append)
    assert told == ["olmo: Pending", "olmo: Pending ImagePullBackOff: no such image", "olmo: Complete"]


def _judged(logs: dict[str, str | ApiError]) -> jobs.Workload:
    ran_on = tuple((pod, "node") for pod in logs)
    workload = jobs.Workload("health-check", "ai", "health-check", "kubectl logs", ends=True, ran_on=ran_on)
    return jobs.judged(Kube(logs=logs), workload)  # type: ignore[arg-type]
