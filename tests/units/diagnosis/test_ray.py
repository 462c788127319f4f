"""RayJobs: each state and reason that KubeRay reports, and where the log is that says more."""

from __future__ import annotations

from typing import Any

import pytest

from diagnosis.cluster import Kind
from diagnosis.report import Report, report
from k8s.objects import Object
from tests.units.diagnosis import objects as make


def diagnosed(deployed: str, *more: tuple[Kind, Object], job: str = "", **status: Any) -> Report:
    kind, found = make.ray_job(deployed, job)
    found["status"] |= status
    return report(make.cluster((kind, found), make.ray_cluster(), *more), "ai", "train")


def submitter() -> tuple[Kind, Object]:
    kind, found = make.job("train-sub")
    found["metadata"]["ownerReferences"] = make.owned_by("train")
    return kind, found


@pytest.mark.parametrize(
    ("reason", "message", "said"),
    [
        ("SubmissionFailed", "", "SubmissionFailed"),
        ("SubmissionFailed", "Job submission has failed.", "SubmissionFailed: Job submission has failed."),
        (
            "AppFailed",
            "Submitter completed but Ray job not found",
            "AppFailed: Submitter completed but Ray job not found",
        ),
        ("DeadlineExceeded", "activeDeadlineSeconds passed", "DeadlineExceeded: activeDeadlineSeconds passed"),
        ("PreRunningDeadlineExceeded", "", "PreRunningDeadlineExceeded"),
        ("JobDeploymentStatusTransitionGracePeriodExceeded", "", "JobDeploymentStatusTransitionGracePeriodExceeded"),
        ("SomethingNew", "of a later version", "SomethingNew: of a later version"),
    ],
)
def test_one_that_has_failed_says_its_reason_with_or_without_a_message(reason: str, message: str, said: str) -> None:
    assert diagnosed("Failed", reason=reason, message=message).head() == [f"train: Failed {said}"]


def test_one_whose_spec_is_refused_has_failed() -> None:
    found = diagnosed("ValidationFailed", reason="ValidationFailed", message="rayClusterSpec is missing")
    assert found.head() == ["train: Failed ValidationFailed: rayClusterSpec is missing"]


HEAD = make.pod("head", owner="cluster-train", on="a", ready=True)
SIDECAR = make.pod("head", owner="cluster-train", on="a", ready=True)
SIDECAR[1]["spec"]["containers"].append({"name": "ray-job-submitter"})


@pytest.mark.parametrize(
    ("reason", "more", "log"),
    [
        ("SubmissionFailed", (submitter(), HEAD), "kubectl logs -n ai job/train-sub"),
        ("JobDeploymentStatusTransitionGracePeriodExceeded", (submitter(), HEAD), "kubectl logs -n ai job/train-sub"),
        ("SubmissionFailed", (SIDECAR,), "kubectl logs -n ai head -c ray-job-submitter"),
        ("AppFailed", (submitter(), HEAD), "kubectl logs -n ai job/train-sub"),
        ("DeadlineExceeded", (submitter(), HEAD), "kubectl describe pod -n ai head"),
        ("SubmissionFailed", (HEAD,), "kubectl describe pod -n ai head"),
    ],
)
def test_a_failed_submission_is_explained_by_the_log_of_its_submitter(reason: str, more: Any, log: str) -> None:
    assert diagnosed("Failed", *more, reason=reason).log == log


def test_one_that_is_interactive_waits_for_a_user() -> None:
    (finding,) = diagnosed("Waiting", HEAD).findings
    assert (finding.why, finding.lasts) == (
        "KubeRay waits until a user submits its job (submissionMode InteractiveMode)",
        True,
    )


def test_one_that_is_suspended_again_loses_its_cluster() -> None:
    assert diagnosed("Suspending").findings[0].why == "KubeRay deletes its cluster, since it is suspended"


def test_one_in_an_appwrapper_tells_its_attempts_too() -> None:
    kind, inner = make.ray_job("Running", "RUNNING")
    inner["metadata"] |= {"uid": "inner", "ownerReferences": make.owned_by("train")}
    inner["status"]["failed"] = 1
    inner["spec"]["backoffLimit"] = 2
    found = report(make.cluster(make.app_wrapper(phase="Running"), (kind, inner)), "ai", "train")
    assert found.remarks == ("1 of at most 3 attempts have failed",)


@pytest.mark.parametrize(
    ("state", "phase"), [("ready", "Running"), ("", "Pending"), ("failed", "Pending"), ("suspended", "Pending")]
)
def test_a_raycluster_of_its_own_is_a_workload_too(state: str, phase: str) -> None:
    kind, found = make.ray_cluster()
    found["status"] = {"state": state, "reason": "" if state == "ready" else "no room for its head"}
    told = report(make.cluster((kind, found)), "ai", "train-abcde")
    assert (told.kind, told.phase) == ("raycluster", phase)
    assert [each.why for each in told.findings] == ([] if state == "ready" else ["no room for its head"])
