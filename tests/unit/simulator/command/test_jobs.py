from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from config.data.content_tags import content_tag
from diagnosis.__main__ import workloads_document
from diagnosis.cluster import Cluster
from diagnosis.report import report
from k8s.objects import Object
from simulator.command import diagnosed, jobs
from simulator.kubelet import placements

IMAGE = "dev.azurecr.io/olmo:1"
OWN = f"dev.azurecr.io/olmo:{content_tag('olmo')}"


def obj(kind: str, name: str, owner: str = "", **more: Any) -> Object:
    """The name is also the uid."""
    version = {"Pod": "v1", "Node": "v1", "Job": "batch/v1"}.get(kind, "apps/v1")
    metadata = {"name": name, "namespace": "ai", "uid": name, "ownerReferences": [{"uid": owner}]}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {}, **more}


def waiting(name: str, owner: str, image: str = IMAGE) -> Object:
    missing = {"reason": "ImagePullBackOff", "message": f"{image}: not found"}
    status = {"containerStatuses": [{"image": image, "state": {"waiting": missing}}]}
    return obj("Pod", name, owner, spec={"nodeName": "a"}, status=status)


def observed(*objects: Object, ran: Path = Path("no-placements")) -> jobs.Workload:
    def listed(api_version: str, kind: str, namespace: str | None) -> list[Object]:
        found = [each for each in objects if (each["kind"], each["apiVersion"]) == (kind, api_version)]
        return found if namespace in (None, "ai") else []

    outputs = {
        "olmo": {"namespace": "ai", "name": "olmo", "command": "kubectl logs", "why": "python -m why", "ends": True}
    }
    cluster = Cluster(lambda kind, namespace: listed(kind.api_version, kind.name, namespace or None))
    document = json.loads(json.dumps(workloads_document(cluster, "ai", [report(cluster, "ai", "olmo")])))
    reports = [("ai", diagnosed.read(each)) for each in document["workloads"]]
    (found,) = jobs.observe(SimpleNamespace(list=listed), outputs, ran, reports)  # type: ignore[arg-type]
    return found


def test_reads_verdicts_without_errors_of_logs() -> None:
    part = {"name": "t", "phase": "Complete", "outcome": "succeeded", "text": "t: Complete", "kind": "job"}
    empty = dict.fromkeys(("findings", "exits", "objects", "pods"), ())
    report = diagnosed.read({**part, **empty, "verdicts": ["VERDICT: PASS; a", "a log cannot be read: b"]})
    assert report.verdicts == ("VERDICT: PASS; a",)


def test_a_missing_image_shows_the_simulators_command() -> None:
    (finding,) = observed(obj("Node", "a"), obj("Job", "olmo"), waiting("olmo-0", "olmo", OWN)).report.findings
    assert finding.text.splitlines()[-1] == "    do: make images"


def test_a_failed_job_shows_the_commands_for_its_log_and_a_retry() -> None:
    failed = obj("Job", "olmo", status={"conditions": [{"type": "Failed", "status": "True", "message": "too often"}]})
    assert observed(failed).complaint("team").splitlines() == [
        "olmo: Failed too often",
        "  look at it:   kubectl logs",
        "  run it again: pulumi up -s team --replace '**:Job::olmo'",
    ]


def test_a_deleted_job_needs_a_refresh() -> None:
    lines = observed().complaint("team").splitlines()
    assert lines[-1] == "  run it again: pulumi up -s team --refresh"


def test_a_waiting_job_shows_its_cause_once_and_no_retry() -> None:
    found = observed(obj("Node", "a"), obj("Job", "olmo"), waiting("olmo-0", "olmo"))
    assert found.complaint("team").splitlines() == [
        "olmo: Pending",
        f"  waits: its registry does not have the image {IMAGE}",
        "    do: kubectl describe pod -n ai olmo-0",
        "        # then push it, or name another image in the pod's spec or",
        "        # workloadOptions",
        "  look at it:   python -m why",
    ]
    known = {finding.text: "metaseq" for finding in found.report.findings}
    assert found.complaint("team", known).splitlines()[1] == "  waits: for the same reason as metaseq"


# -- stubbed pods ------------------------------------------------------------------------------------------------------

COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}
WHY = "image docker.io/me/mine:1 has no recipe in simulator/sandbox/recipes/ (docs/simulator.md, The sandbox)"


def record(file: Path, pod: str, reason: str = "") -> None:
    owners = [{"kind": "Job", "name": "olmo", "uid": "olmo"}]
    metadata = {"name": pod, "namespace": "ai", "uid": pod, "ownerReferences": owners}
    spec = {"nodeName": "a", "containers": [{"name": "main", "image": "docker.io/me/mine:1"}]}
    status = {"phase": "Succeeded", **({"reason": reason, "message": WHY} if reason else {})}
    placements.Placements(file).record([{"metadata": metadata, "spec": spec, "status": status}])


def test_a_stubbed_job_is_complete_and_has_not_passed(tmp_path: Path) -> None:
    record(tmp_path / "placements.json", "olmo-0", "Stubbed")
    found = observed(obj("Job", "olmo", status=COMPLETE), ran=tmp_path / "placements.json")
    assert (found.settled, found.failed, found.passed) == (True, False, False)
    assert found.complaint("dev").splitlines() == [
        "olmo: Complete (stubbed: no process ran)",
        "  Stubbed: image docker.io/me/mine:1 has no recipe in simulator/sandbox/recipes/",
        "    (docs/simulator.md, The sandbox)",
        "  look at it:   kubectl logs",
        "  run it again: pulumi up -s dev --replace '**:Job::olmo'",
    ]


@pytest.mark.parametrize(
    ("reason", "phase"), [("PartlyStubbed", "Complete (partly stubbed)"), ("Evicted", "Complete"), ("", "Complete")]
)
def test_a_complete_job_has_passed_if_no_pod_was_stubbed(reason: str, phase: str, tmp_path: Path) -> None:
    record(tmp_path / "placements.json", "olmo-0", reason)
    found = observed(obj("Job", "olmo", status=COMPLETE), ran=tmp_path / "placements.json")
    assert (found.phase, found.passed) == (phase, phase == "Complete")


def test_a_service_with_stubbed_pods_is_not_simply_available() -> None:
    available = {"conditions": [{"type": "Available", "status": "True"}]}
    stubbed = {"phase": "Running", "reason": "Stubbed", "message": WHY}
    replicas, pod = obj("ReplicaSet", "rs", "olmo"), obj("Pod", "olmo-0", "rs", status=stubbed)
    found = observed(obj("Deployment", "olmo", status=available), replicas, pod)
    assert found.phase == "Available (stubbed: no process ran)"
    assert found.complaint("dev").splitlines()[-1] == "  run it again: kubectl rollout restart -n ai deployment olmo"
