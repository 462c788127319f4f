"""How workloads fare, as `make up` tells it: whose pods are held up, and what the logs of tests end with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from diagnosis.report import Report
from simulator import jobs
from simulator.kube.client import ApiError
from simulator.kubelet import placements
from simulator.sandbox import sandbox

Object = dict[str, Any]
IMAGE = "dev.azurecr.io/olmo:1"
MISSING = {"reason": "ImagePullBackOff", "message": f"{IMAGE}: not found"}


class Kube:
    """The API server as far as it is asked: objects by kind, and what it answers for each pod's log."""

    def __init__(self, *objects: Object, logs: dict[str, str | ApiError] | None = None) -> None:
        self._objects, self._logs = objects, logs or {}

    def list(self, api_version: str, kind: str, namespace: str | None) -> list[Object]:
        return [
            obj
            for obj in self._objects
            if (obj["kind"], obj["apiVersion"]) == (kind, api_version) and namespace in (None, "ai")
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


def observed(kube: Kube, name: str, ran: Path = Path("no-placements")) -> jobs.Workload:
    outputs = {name: {"namespace": "ai", "name": name, "command": "kubectl logs", "why": "python -m why", "ends": True}}
    (found,) = jobs.observe(kube, outputs, ran)  # type: ignore[arg-type]
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


# -- what is faked -----------------------------------------------------------------------------------------------------

COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}


def record(file: Path, pod: str, *, by_kwok: bool) -> None:
    """The kubelet's record of a pod of the job, which may be gone by now."""
    annotations = {"simulator/run-by": "kwok"} if by_kwok else {}
    owners = [{"kind": "Job", "name": "olmo", "uid": "olmo"}]
    metadata = {"name": pod, "namespace": "ai", "uid": pod, "annotations": annotations, "ownerReferences": owners}
    spec = {"nodeName": "a", "containers": [{"name": "main", "image": "docker.io/me/mine:1"}]}
    placements.Placements(file).record([{"metadata": metadata, "spec": spec}])


def test_a_job_for_which_nothing_ran_is_complete_and_has_not_passed(tmp_path: Path) -> None:
    record(tmp_path / "placements.json", "olmo-0", by_kwok=True)
    found = observed(Kube(obj("Job", "olmo", status=COMPLETE)), "olmo", tmp_path / "placements.json")
    assert (found.phase, found.settled, found.failed, found.passed) == (
        "Complete (faked: nothing ran)",
        True,
        False,
        False,
    )
    assert found.complaint.splitlines() == [
        "olmo: Complete (faked: nothing ran)",
        "  image docker.io/me/mine:1 has no recipe in simulator/sandbox/recipes/",
        "    do: docs/simulator.md, The sandbox, says how to add one",
        "  look at it:   kubectl logs",
        "  run it again: kubectl delete job -n ai olmo && pulumi up --refresh",
    ]


def test_a_job_whose_script_ran_has_passed(tmp_path: Path) -> None:
    record(tmp_path / "placements.json", "olmo-0", by_kwok=False)
    found = observed(Kube(obj("Job", "olmo", status=COMPLETE)), "olmo", tmp_path / "placements.json")
    assert (found.phase, found.passed) == ("Complete", True)


def test_an_image_with_a_recipe_is_faked_where_no_sandbox_can_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "available", lambda: "no bubblewrap")
    pods = obj("Pod", "olmo-0", "olmo", spec={"containers": [{"image": IMAGE}]})
    pods["metadata"]["annotations"] = {"simulator/run-by": "kwok"}
    told = observed(Kube(obj("Job", "olmo", status=COMPLETE), pods), "olmo").complaint
    assert f"  image {IMAGE} cannot run on this machine: no bubblewrap" in told


def test_a_service_whose_pods_nobody_runs_is_not_simply_available() -> None:
    available = {"conditions": [{"type": "Available", "status": "True"}]}
    replicas, pod = obj("ReplicaSet", "rs", "olmo"), obj("Pod", "olmo-0", "rs", spec={"containers": [{"image": "x"}]})
    pod["metadata"]["annotations"] = {"simulator/run-by": "kwok"}
    found = observed(Kube(obj("Deployment", "olmo", status=available), replicas, pod), "olmo")
    assert found.phase == "Available (faked: nothing ran)"


def _judged(logs: dict[str, str | ApiError]) -> jobs.Workload:
    ran_on = tuple((pod, "node") for pod in logs)
    told = Report("health-check", "Complete")
    workload = jobs.Workload("health-check", "ai", "kubectl logs", "", ends=True, report=told, ran_on=ran_on)
    return jobs.judged(Kube(logs=logs), workload)  # type: ignore[arg-type]
