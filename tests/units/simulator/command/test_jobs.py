"""How workloads fare, as `make up` tells it: whose pods are held up, and what the logs of tests end with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from diagnosis.report import Report
from k8s.objects import Object
from simulator.command import jobs
from simulator.kube.client import ApiError
from simulator.kubelet import placements

IMAGE = "dev.azurecr.io/olmo:1"
MISSING = {"reason": "ImagePullBackOff", "message": f"{IMAGE}: not found"}


class KubeWithLogs:
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
    version = {"Pod": "v1", "Node": "v1", "Job": "batch/v1"}.get(kind, "apps/v1")
    metadata = {"name": name, "namespace": "ai", "uid": name, "ownerReferences": [{"uid": owner}]}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {}, **more}


def waiting(name: str, owner: str) -> Object:
    status = {"containerStatuses": [{"image": IMAGE, "state": {"waiting": MISSING}}]}
    return obj("Pod", name, owner, spec={"nodeName": "a"}, status=status)


def observed(kube: KubeWithLogs, name: str, ran: Path = Path("no-placements")) -> jobs.Workload:
    outputs = {name: {"namespace": "ai", "name": name, "command": "kubectl logs", "why": "python -m why", "ends": True}}
    (found,) = jobs.observe(kube, outputs, ran)  # type: ignore[arg-type]
    return found


def test_the_verdicts_of_a_test_are_told_and_failures_come_first() -> None:
    logs: dict[str, str | ApiError] = {"a": "VERDICT: PASS; a\n", "b": "VERDICT: FAIL; b\n", "c": "training\n"}
    assert _judged(logs).report.verdicts == ("VERDICT: FAIL; b", "VERDICT: PASS; a")


def test_a_pod_that_is_gone_has_no_verdict() -> None:
    assert _judged({"a": ApiError(404, "NotFound", "pods a not found")}).report.verdicts == ()


def test_of_several_containers_none_is_a_tests() -> None:
    assert _judged({"a": ApiError(400, "BadRequest", "a container name must be specified")}).report.verdicts == ()


@pytest.mark.parametrize("code", [403, 500])
def test_a_log_that_cannot_be_read_is_no_lack_of_a_verdict(code: int) -> None:
    with pytest.raises(ApiError, match="refused"):
        _judged({"a": ApiError(code, "", "refused")})


def test_a_failed_job_is_told_with_the_commands_that_show_it_and_run_it_again() -> None:
    failed = obj("Job", "olmo", status={"conditions": [{"type": "Failed", "status": "True", "message": "too often"}]})
    assert observed(KubeWithLogs(failed), "olmo").complaint("team").splitlines() == [
        "olmo: Failed too often",
        "  look at it:   kubectl logs",
        "  run it again: pulumi up -s team --replace '**:Job::olmo'",
    ]


def test_a_job_that_is_gone_is_made_again_once_pulumi_knows() -> None:
    assert (
        observed(KubeWithLogs(), "olmo").complaint("team").splitlines()[-1]
        == "  run it again: pulumi up -s team --refresh"
    )


def test_a_job_that_only_waits_is_told_with_its_cause_and_is_not_to_be_run_again() -> None:
    kube = KubeWithLogs(obj("Node", "a"), obj("Job", "olmo"), waiting("olmo-0", "olmo"))
    assert observed(kube, "olmo").complaint("team").splitlines() == [
        "olmo: Pending",
        f"  waits: its registry does not have the image {IMAGE}",
        "    do: kubectl describe pod -n ai olmo-0",
        "        # then push it, or name another in the workload's options",
        "  look at it:   python -m why",
    ]


# -- what is faked -----------------------------------------------------------------------------------------------------

COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}


WHY = "image docker.io/me/mine:1 has no recipe in simulator/sandbox/recipes/ (docs/simulator.md, The sandbox)"


def record(file: Path, pod: str, reason: str = "") -> None:
    """The kubelet's record of a pod of the job, which may be gone by now."""
    owners = [{"kind": "Job", "name": "olmo", "uid": "olmo"}]
    metadata = {"name": pod, "namespace": "ai", "uid": pod, "ownerReferences": owners}
    spec = {"nodeName": "a", "containers": [{"name": "main", "image": "docker.io/me/mine:1"}]}
    status = {"phase": "Succeeded", **({"reason": reason, "message": WHY} if reason else {})}
    placements.Placements(file).record([{"metadata": metadata, "spec": spec, "status": status}])


def test_a_job_for_which_nothing_ran_is_complete_and_has_not_passed(tmp_path: Path) -> None:
    record(tmp_path / "placements.json", "olmo-0", "Faked")
    found = observed(KubeWithLogs(obj("Job", "olmo", status=COMPLETE)), "olmo", tmp_path / "placements.json")
    assert (found.phase, found.settled, found.failed, found.passed) == (
        "Complete (faked: nothing ran)",
        True,
        False,
        False,
    )
    assert found.complaint("dev").splitlines() == [
        "olmo: Complete (faked: nothing ran)",
        "  Faked: image docker.io/me/mine:1 has no recipe in simulator/sandbox/recipes/",
        "    (docs/simulator.md, The sandbox)",
        "  look at it:   kubectl logs",
        "  run it again: pulumi up -s dev --replace '**:Job::olmo'",
    ]


def test_a_job_of_which_a_part_did_not_run_has_not_passed(tmp_path: Path) -> None:
    record(tmp_path / "placements.json", "olmo-0", "PartlyFaked")
    found = observed(KubeWithLogs(obj("Job", "olmo", status=COMPLETE)), "olmo", tmp_path / "placements.json")
    assert (found.phase, found.passed) == ("Complete (partly faked)", False)


def test_a_pod_that_was_evicted_is_not_faked(tmp_path: Path) -> None:
    record(tmp_path / "placements.json", "olmo-0", "Evicted")
    assert observed(KubeWithLogs(obj("Job", "olmo", status=COMPLETE)), "olmo", tmp_path / "placements.json").passed


def test_a_job_whose_script_ran_has_passed(tmp_path: Path) -> None:
    record(tmp_path / "placements.json", "olmo-0")
    found = observed(KubeWithLogs(obj("Job", "olmo", status=COMPLETE)), "olmo", tmp_path / "placements.json")
    assert (found.phase, found.passed) == ("Complete", True)


def test_a_service_whose_pods_nobody_runs_is_not_simply_available() -> None:
    available = {"conditions": [{"type": "Available", "status": "True"}]}
    faked = {"phase": "Running", "reason": "Faked", "message": WHY}
    replicas, pod = obj("ReplicaSet", "rs", "olmo"), obj("Pod", "olmo-0", "rs", status=faked)
    found = observed(KubeWithLogs(obj("Deployment", "olmo", status=available), replicas, pod), "olmo")
    assert found.phase == "Available (faked: nothing ran)"
    assert found.complaint("dev").splitlines()[-1] == "  run it again: kubectl rollout restart -n ai deployment olmo"


def _judged(logs: dict[str, str | ApiError]) -> jobs.Workload:
    ran_on = tuple((pod, "node") for pod in logs)
    told = Report("health-check", "Complete")
    workload = jobs.Workload("health-check", "ai", "kubectl logs", "", ends=True, report=told, ran_on=ran_on)
    return jobs.judged(KubeWithLogs(logs=logs), workload)  # type: ignore[arg-type]
