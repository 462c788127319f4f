"""RayServices: each state that KubeRay and Ray Serve report."""

from __future__ import annotations

from typing import Any

import pytest

from diagnosis.cluster import RAY_SERVICE, Kind
from diagnosis.report import Report, report
from k8s.objects import Object
from tests.unit.diagnosis import objects as make

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
