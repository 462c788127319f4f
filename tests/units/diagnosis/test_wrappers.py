"""The life of an AppWrapper: what it waits for and until when, how many retries are spent, why it has failed."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from diagnosis.cluster import CONFIG_MAP, Kind
from diagnosis.report import Report, report
from k8s.objects import Object
from operators.appwrapper import configuration
from tests.units.diagnosis import objects as make

AT = "2026-11-22T10:42:00Z"
FAILED_PODS: Object = {"Unhealthy": ("True", "FoundFailedPods", "")}
DEPLOYED: Object = {"ResourcesDeployed": ("True", "Resuming", "Suspend is false")}
LOOK = "do: kubectl describe appwrapper -n ai train"


def configured() -> tuple[Kind, Object]:
    """As the program installs it, with half an hour to warm up."""
    metadata = {"name": "appwrapper-operator-config", "namespace": "appwrapper-system"}
    return CONFIG_MAP, {"metadata": metadata, "data": {"config.yaml": yaml.safe_dump(configuration(30, "coscheduler"))}}


def wrapper(phase: str, conditions: Object, *, spent: int = 0, **annotations: str) -> tuple[Kind, Object]:
    """Of one pod. Conditions are given as (status, reason, message), and have all changed at the same time."""
    kind, found = make.app_wrapper(phase=phase)
    names = ("status", "reason", "message")
    told = [
        {"type": each, "lastTransitionTime": AT, **dict(zip(names, conditions[each], strict=True))}
        for each in conditions
    ]
    prefix = "workload.codeflare.dev.appwrapper/"
    found["metadata"]["annotations"] = {f"{prefix}{key}": value for key, value in annotations.items()}
    parts = [{"podSets": [{"path": "template.spec.template"}]}]
    found["status"] |= {"conditions": told, "resettingCount": spent, "componentStatus": parts}
    return kind, found


def pod(**status: Any) -> tuple[Kind, Object]:
    """Of the job that it wraps."""
    return make.pod("train-0", owner="gone", on="a", labels={"workload.codeflare.dev/appwrapper": "train"}, **status)


def diagnosed(*objects: tuple[Kind, Object]) -> Report:
    return report(make.cluster(*objects), "ai", "train")


def told(*objects: tuple[Kind, Object]) -> list[str]:
    return make.told(diagnosed(*objects, configured()))


@pytest.mark.parametrize(
    ("pods", "annotations", "why"),
    [
        ([], {}, "be there until 10:43 UTC (admissionGracePeriodDuration)"),
        ([pod()], {}, "be ready until 11:12 UTC (warmupGracePeriodDuration)"),
        ([pod()], {"warmupGracePeriodDuration": "1h30m"}, "be ready until 12:12 UTC (warmupGracePeriodDuration)"),
        ([pod()], {"warmupGracePeriodDuration": "soon"}, "be ready until 11:12 UTC (warmupGracePeriodDuration)"),
    ],
    ids=["no pod yet", "as configured", "as annotated", "a malformed annotation counts as none, as with AppWrapper"],
)
def test_while_pods_warm_up_it_is_told_until_when_they_may(
    pods: list[tuple[Kind, Object]], annotations: dict[str, Any], why: str
) -> None:
    warm = wrapper("Running", DEPLOYED | {"PodsReady": ("False", "Resuming", "")}, **annotations)
    assert told(warm, *pods) == [
        f"waits: AppWrapper gives its pods time to {why}, then it starts all of it anew (0 of 3 retries spent)",
        LOOK,
    ]


def test_that_is_no_news_at_each_look() -> None:
    warm = wrapper("Running", DEPLOYED | {"PodsReady": ("False", "Resuming", "")})
    assert [finding.passing for finding in diagnosed(warm, pod()).findings] == [True]


def test_with_failed_pods_the_job_itself_has_a_grace_period() -> None:
    failed = wrapper("Running", DEPLOYED | FAILED_PODS, spent=1, retryLimit="5")
    assert told(failed, pod(phase="Failed")) == [
        "waits: FoundFailedPods: the job itself may make good for its failed pods until 10:43 UTC, then all of it is "
        "started anew (1 of 5 retries spent)",
        LOOK,
    ]


def test_a_reset_takes_all_of_it_away_at_last_by_force() -> None:
    going = DEPLOYED | FAILED_PODS | {"DeletingResources": ("True", "DeletionInitiated", "")}
    assert told(wrapper("Resetting", going, spent=2))[:2] == [
        "waits: AppWrapper takes all of it away, by force what has not ended by 10:52 UTC, and then starts it anew, "
        "for FoundFailedPods (2 of 3 retries spent)",
        LOOK,
    ]


def test_its_pods_on_a_lost_node_are_told_though_their_job_is_gone() -> None:
    going = wrapper("Resetting", DEPLOYED | FAILED_PODS | {"DeletingResources": ("True", "DeletionInitiated", "")})
    (kind, left), (_, node) = pod(phase="Running"), make.node("a")
    left["metadata"]["deletionTimestamp"] = AT
    node["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    found = told(going, (kind, left), make.node("b"), (make.node("a")[0], node))
    assert found[0].startswith("waits: pod train-0 is Terminating on node a, which is silent: ")
    assert "by force what has not ended by 10:52 UTC" in found[2]


def test_then_it_pauses_and_what_autopilot_has_found_counts_as_no_retry() -> None:
    gone = {"ResourcesDeployed": ("False", "Resetting", "")}
    assert told(wrapper("Resetting", gone | {"Unhealthy": ("True", "AutopilotNoExecute", "nodes: map[a:{}]")}))[0] == (
        "waits: AppWrapper pauses until 10:43 UTC, and then starts it anew, for AutopilotNoExecute: nodes: map[a:{}], "
        "which counts as no retry (0 of 3 retries spent)"
    )


@pytest.mark.parametrize("phase", ["Suspending", "Terminating"])
def test_what_is_taken_away_for_good(phase: str) -> None:
    going = wrapper(
        phase, {"DeletingResources": ("True", "DeletionInitiated", "")}, forcefulDeletionGracePeriodDuration="2m"
    )
    assert told(going)[0] == "waits: AppWrapper takes all of it away, by force what has not ended by 10:44 UTC"


NO_KIND = 'error creating components: no matches for kind "RayCluster" in version "ray.io/v1"'


def test_one_of_a_kind_that_is_not_served_any_more_never_ends() -> None:
    deleting = {"DeletingResources": ("True", "DeletionInitiated", ""), "Unhealthy": ("True", "CreateFailed", NO_KIND)}
    kind, going = wrapper("Terminating", deleting, forcefulDeletionGracePeriodDuration="2m")
    going["metadata"]["deletionTimestamp"] = "2026-11-22T10:40:00Z"
    (finding,) = diagnosed((kind, going)).findings
    assert finding.lasts
    assert finding.why == (
        "AppWrapper takes all of it away since 10:40 UTC, by force what has not ended by 10:44 UTC, and cannot finish: "
        f"CreateFailed: {NO_KIND}"
    )
    assert finding.fix.startswith("kubectl patch appwrapper -n ai train --type merge -p ")


def test_one_that_goes_for_a_failure_says_which() -> None:
    going = wrapper("Suspending", {"Unhealthy": ("True", "FoundFailedPods", "")})
    assert told(going)[0] == "waits: AppWrapper takes all of it away, for FoundFailedPods"


def test_resources_that_the_api_server_refuses_are_tried_again_for_a_while() -> None:
    kind, refused = wrapper("Resuming", DEPLOYED)
    errored = {"type": "ResourcesDeployed", "status": "False", "reason": "ComponentCreationErrored"}
    refused["status"]["componentStatus"] = [{"kind": "PyTorchJob", "conditions": [errored]}]
    assert told((kind, refused))[0] == (
        "waits: the API server refused PyTorchJob; AppWrapper tries again until 10:43 UTC "
        "(admissionGracePeriodDuration), then it starts all of it anew (0 of 3 retries spent)"
    )


@pytest.mark.parametrize("reason", ["CreateFailed", "FoundFailedPods"])
def test_after_a_reset_it_is_reported_why_the_last_try_ended(reason: str) -> None:
    again = wrapper("Resuming", DEPLOYED | {"Unhealthy": ("True", reason, "denied")}, spent=1)
    assert told(again) == [
        f"waits: its last try ended with {reason}: denied; AppWrapper tries again until 10:43 UTC "
        "(admissionGracePeriodDuration), then it starts all of it anew (1 of 3 retries spent)",
        LOOK,
    ]


def test_one_that_runs_again_says_for_what() -> None:
    again = wrapper("Running", DEPLOYED | {"PodsReady": ("True", "SufficientPodsReady", "")}, spent=1)
    event = make.event(again, "Unhealthy", "FoundFailedPods: 1 failed pods")
    assert diagnosed(again, event, pod(), configured()).remarks == (
        "AppWrapper has started it anew: 1 of 3 retries spent, the last one for FoundFailedPods: 1 failed pods",
    )


def test_one_that_has_failed_says_why_and_how_long_its_pods_stay() -> None:
    conditions = {
        "Unhealthy": ("True", "FailedComponent", "Found 1 failed components"),
        "DeletingResources": ("False", "DeletionPaused", "has value 10m0s"),
    }
    failed = wrapper("Failed", conditions, spent=3, deletionOnFailureGracePeriodDuration="10m")
    found = diagnosed(failed, configured())
    assert found.message == "FailedComponent: Found 1 failed components (3 of 3 retries spent)"
    assert found.remarks == ("AppWrapper keeps its pods and its quota until 10:52 UTC, so that they can be looked at",)


def test_where_its_configuration_cannot_be_read_no_times_are_made_up() -> None:
    warm = wrapper("Running", DEPLOYED | {"PodsReady": ("False", "Resuming", "")})
    assert make.told(diagnosed(warm))[0] == (
        "waits: AppWrapper gives its pods time to be there (admissionGracePeriodDuration), then it starts all of it "
        "anew (0 retries spent)"
    )
