"""Jobs and RayJobs of which attempts have failed: how many, of how many, and why the last one did."""

from __future__ import annotations

from typing import Any

import pytest

from diagnosis.cluster import Kind
from diagnosis.report import Report, report
from k8s.objects import Object
from tests.units.diagnosis import objects as make


def job(failed: int, *, ready: int = 0, **spec: Any) -> tuple[Kind, Object]:
    kind, found = make.job(**{"backoffLimit": 6, **spec})
    found["status"] = {"failed": failed, "ready": ready}
    return kind, found


def failed_pod(name: str, code: int, at: str = "2026-11-22T10:00:00Z", **status: Any) -> tuple[Kind, Object]:
    ended = {"exitCode": code, "reason": "Error", "finishedAt": at}
    states: Object = {"containerStatuses": [{"name": "main", "state": {"terminated": ended}}]}
    return make.pod(name, owner="train", on="a", phase="Failed", **states, **status)


def diagnosed(*objects: tuple[Kind, Object]) -> Report:
    return report(make.cluster(*objects), "ai", "train")


def test_a_job_that_waits_for_another_try_tells_how_many_have_failed_and_why_the_last_one_did() -> None:
    pods = [failed_pod("train-a", 3, "2026-11-22T10:05:00Z"), failed_pod("train-b", 1)]
    assert make.told(diagnosed(job(2), *pods)) == [
        "waits: Job train has had 2 failed pods, and may have 6; the last one: pod train-a: container main ended with "
        "exit code 3",
        "do: kubectl describe job -n ai train",
    ]


def test_one_that_runs_again_only_mentions_it() -> None:
    running = make.pod("train-b", owner="train", on="a", ready=True)
    found = diagnosed(job(1, ready=1), failed_pod("train-a", 3), running)
    assert found.findings == ()
    assert found.remarks == (
        "Job train has had 1 failed pod, and may have 6; the last one: "
        "pod train-a: container main ended with exit code 3",
    )


@pytest.mark.parametrize(
    ("spec", "most"),
    [
        ({"backoffLimit": 0}, ", and may have 0"),
        ({"backoffLimit": 2**31 - 1, "backoffLimitPerIndex": 1}, ", and may have 1 of each index"),
        ({"backoffLimit": 2**31 - 1}, ""),
    ],
)
def test_how_many_may_fail(spec: Object, most: str) -> None:
    assert make.told(diagnosed(job(1, **spec)))[-2] == f"waits: Job train has had 1 failed pod{most}"


def test_a_pod_that_was_driven_out_says_by_whom() -> None:
    said = "Taint manager: deleting due to NoExecute taint"
    driven: Object = {"conditions": [{"type": "DisruptionTarget", "status": "True", "message": said}]}
    pod = make.pod("train-a", owner="train", on="a", phase="Failed", **driven)
    assert make.told(diagnosed(job(1), pod))[0].endswith(f"the last one: pod train-a: {said}")


def test_why_a_pod_was_evicted_comes_before_how_its_container_ended() -> None:
    kind, pod = failed_pod("train-a", 143)
    reason = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "preempting"}
    pod["status"]["conditions"] = [reason]
    assert (
        "the last one: pod train-a: PreemptionByScheduler: preempting" in make.told(diagnosed(job(1), (kind, pod)))[0]
    )


def test_a_job_that_has_ended_says_so_by_itself() -> None:
    kind, over = job(3)
    over["status"]["conditions"] = [{"type": "Failed", "status": "True", "message": "BackoffLimitExceeded"}]
    assert diagnosed((kind, over)).remarks == ()


def test_one_that_is_about_to_fail_says_why_while_its_pods_end() -> None:
    kind, over = job(3)
    target = {"type": "FailureTarget", "status": "True", "reason": "PodFailurePolicy", "message": "exit code 42"}
    over["status"]["conditions"] = [target]
    assert make.told(diagnosed((kind, over)))[0] == (
        "waits: Job train has failed (PodFailurePolicy: exit code 42), and Kubernetes deletes its pods"
    )


def test_one_that_has_failed_without_a_message_says_its_reason() -> None:
    kind, over = job(3)
    over["status"]["conditions"] = [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": ""}]
    assert diagnosed((kind, over)).head() == ["train: Failed DeadlineExceeded"]


def test_a_pytorchjob_that_is_restarted_says_for_what() -> None:
    kind, again = make.pytorch_job(Created="True", Running="False", Restarting="True")
    again["status"]["conditions"][-1]["message"] = "PyTorchJob train is restarting because 1 Worker replica(s) failed."
    assert make.told(diagnosed((kind, again)))[-2] == (
        "waits: the training operator restarts it: PyTorchJob train is restarting because 1 Worker replica(s) failed."
    )


def test_the_job_in_an_appwrapper_is_told_too() -> None:
    kind, inner = job(1, ready=1)
    inner["metadata"] |= {"uid": "inner", "ownerReferences": make.owned_by("train")}
    found = diagnosed(make.app_wrapper(phase="Running"), (kind, inner))
    assert found.remarks == ("Job train has had 1 failed pod, and may have 6",)


def ray_job(deployed: str, **status: Any) -> tuple[Kind, Object]:
    kind, found = make.ray_job(deployed, "RUNNING", message=status.pop("message", ""))
    found["spec"]["backoffLimit"] = 2
    found["status"] |= {"failed": 1, **status}
    return kind, found


def test_a_rayjob_that_begins_anew_knows_why_until_its_cluster_has_gone() -> None:
    again = ray_job("Retrying", reason="AppFailed", message="Job entrypoint command failed")
    assert make.told(diagnosed(again))[-2:] == [
        "waits: 1 of at most 3 attempts have failed, and KubeRay takes its cluster away to make another; the last one: "
        "AppFailed: Job entrypoint command failed",
        "do: kubectl describe rayjob -n ai train",
    ]


@pytest.mark.parametrize("deployed", ["Running", "Failed"])
def test_afterwards_and_when_all_is_lost_only_their_number(deployed: str) -> None:
    assert diagnosed(ray_job(deployed)).remarks == ("1 of at most 3 attempts have failed",)


@pytest.mark.parametrize("ready", [True, False])
@pytest.mark.parametrize("reason", ["EvictionByEvictionAPI", "PreemptionByScheduler"])
def test_pods_that_are_being_evicted_or_preempted_are_reported_before_they_end(reason: str, ready: bool) -> None:
    pods = [make.pod(f"train-{number}", owner="train", on="a", ready=ready) for number in "ab"]
    for _, pod in pods:
        pod["status"]["conditions"].append({"type": "DisruptionTarget", "status": "True", "reason": reason})
    assert diagnosed(job(0), *pods).remarks == (f"pods train-a and train-b are being evicted or preempted: {reason}",)
