"""RayServices: each state that KubeRay and Ray Serve report."""

from __future__ import annotations

from typing import Any

import pytest

from diagnosis.cluster import RAY_SERVICE, Kind
from diagnosis.report import Report, report
from k8s.objects import Object
from tests.units.diagnosis import objects as make

HEAD = make.pod("head", owner="cluster-train", on="a", ready=True)
INITIALIZING = ("False", "Initializing", "RayService is initializing")
SERVES = ("True", "NonZeroServeEndpoints", "Number of serve endpoints is greater than 0")
RETRIED = "it has failed 3 times in a row"


def service(ready: tuple[str, ...] = (), *, suspend: bool = False, **status: Any) -> tuple[Kind, Object]:
    told = [dict(zip(("type", "status", "reason", "message"), ("Ready", *ready), strict=True))] if ready else []
    metadata = {"name": "train", "uid": "train", "namespace": "ai"}
    spec = {"rayClusterConfig": {"suspend": suspend}}
    return RAY_SERVICE, {"metadata": metadata, "spec": spec, "status": {"conditions": told, **status}}


def diagnosed(found: tuple[Kind, Object], *more: tuple[Kind, Object]) -> Report:
    return report(make.cluster(found, *more), "ai", "train")


def serving(state: str, message: str = "", **deployments: tuple[str, str]) -> Object:
    """The status of a RayCluster that has one application."""
    each = {name: {"status": of, "message": said} for name, (of, said) in deployments.items()}
    application = {"status": state, "message": message, "serveDeploymentStatuses": each}
    return {"rayClusterName": "train-abcde", "applicationStatuses": {"llm": application}}


@pytest.mark.parametrize(
    ("ready", "status", "head"),
    [
        (INITIALIZING, {}, "Pending Initializing: RayService is initializing"),
        (SERVES, {"serviceStatus": "Running"}, "Running"),
        (("False", "ZeroServeEndpoints", "dropped to 0"), {}, "Pending ZeroServeEndpoints: dropped to 0"),
        (
            ("False", "ValidationFailed", "no head"),
            {"serviceStatus": "Running"},
            "Failed ValidationFailed: no head; KubeRay retries after a change of the spec",
        ),
        (
            ("False", "InitializingTimeout", "10m0s"),
            {},
            "Failed InitializingTimeout: 10m0s; KubeRay does not retry: delete the RayService and create it again",
        ),
        ((), {"serviceStatus": "Running"}, "Running"),
        ((), {"serviceStatus": "WaitForServeDeploymentReady"}, "Pending"),
    ],
)
def test_a_rayservice_has_the_phase_of_its_condition_ready(ready: tuple[str, ...], status: Object, head: str) -> None:
    assert " ".join("\n".join(diagnosed(service(ready, **status), HEAD).head()).split()) == f"train: {head}"


@pytest.mark.parametrize(
    ("application", "why", "passing"),
    [
        (serving("RUNNING", v=("HEALTHY", "")), "", True),
        (serving("DEPLOYING"), "DEPLOYING in RayCluster train-abcde", True),
        (serving("DEPLOY_FAILED", "import error"), "DEPLOY_FAILED in RayCluster train-abcde: import error", False),
        (
            serving("DEPLOY_FAILED", "['v'] are UNHEALTHY", v=("DEPLOY_FAILED", RETRIED), w=("HEALTHY", "")),
            f"DEPLOY_FAILED in RayCluster train-abcde: v DEPLOY_FAILED: {RETRIED}",
            False,
        ),
        (serving("UNHEALTHY", v=("UNHEALTHY", "no")), "UNHEALTHY in RayCluster train-abcde: v UNHEALTHY: no", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("ready", "place"), [(INITIALIZING, "pendingServiceStatus"), (SERVES, "activeServiceStatus")])
def test_each_state_of_an_application(
    application: Object, why: str, passing: bool, ready: tuple[str, ...], place: str
) -> None:
    status: Object = {place: application}
    found = diagnosed(service(ready, **status), make.ray_cluster(), HEAD).findings
    assert [each.why for each in found] == ([f"Ray Serve's application llm is {why}"] if why else [])
    assert all(each.passing == passing for each in found)


def test_the_pods_of_its_clusters_are_its_pods_and_a_pending_one_is_an_upgrade() -> None:
    said = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    waits = make.pod("new-head", owner="cluster-train", said=said)
    both: Object = {"activeServiceStatus": {"rayClusterName": "old"}, "pendingServiceStatus": {"rayClusterName": "new"}}
    found = diagnosed(service(SERVES, **both), make.ray_cluster(), HEAD, waits)
    assert found.phase == "Running"
    assert [each.why for each in found.findings] == [
        "KubeRay upgrades it: RayCluster old serves until new is ready",
        f"the scheduler says: {said}",
    ]


@pytest.mark.parametrize(("rollback", "verb"), [("False", "upgrades it"), ("True", "rolls back its upgrade")])
def test_an_upgrade_in_steps_or_its_rollback_says_how_many_requests_go_to_the_new_cluster(
    rollback: str, verb: str
) -> None:
    kind, found = service(SERVES, activeServiceStatus={"rayClusterName": "old", "trafficRoutedPercent": 80})
    found["status"]["pendingServiceStatus"] = {"rayClusterName": "new", "trafficRoutedPercent": 20}
    found["status"]["conditions"].append({"type": "RollbackInProgress", "status": rollback})
    (finding,) = diagnosed((kind, found), make.ray_cluster(), HEAD).findings
    assert finding.why.startswith(f"KubeRay {verb}: ")
    assert finding.why.endswith("; new gets 20% of the requests")


@pytest.mark.parametrize(("last", "shown"), [("FailedToUpdate", True), ("Updated", False)])
def test_a_refused_configuration_is_shown_until_one_is_accepted(last: str, shown: bool) -> None:
    found, refused = service(INITIALIZING), "Failed to update serve applications: 400 Bad Request"
    events = [
        make.event(found, "FailedToUpdateServeApplications", refused, "2026-11-22T10:01:00Z"),
        make.event(found, f"{last}ServeApplications", refused, "2026-11-22T10:02:00Z"),
    ]
    findings = diagnosed(found, make.ray_cluster(), HEAD, *events).findings
    assert (refused in [each.why for each in findings]) is shown


def test_kueue_holds_a_rayservice_by_the_configuration_of_its_cluster() -> None:
    (finding,) = diagnosed(service(suspend=True), make.queued("default-queue", "insufficient quota")).findings
    assert finding.why == "it has no quota in its queue default-queue: insufficient quota"
