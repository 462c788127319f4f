"""Pods on a node that do not run: images, volumes, refusals, in the kubelet's and containerd's words."""

from __future__ import annotations

from typing import Any

import pytest

from config.facts.content_tags import content_tag
from diagnosis.cluster import Kind, Object
from diagnosis.finding import Finding
from diagnosis.report import report
from tests.units.diagnosis import objects as make

HOST = "stack4082.azurecr.io"
OWN = f"{HOST}/olmo:{content_tag('olmo')}"
NOT_FOUND = 'failed to pull and unpack image "{0}": failed to resolve reference "{0}": {0}: not found'
UNAUTHORIZED = (
    'failed to pull and unpack image "{0}": failed to resolve reference "{0}": failed to authorize: failed to fetch '
    f"anonymous token: unexpected status from GET request to https://{HOST}/oauth2/token: 401 Unauthorized"
)
NO_HOST = (
    'failed to resolve reference "{0}": failed to do request: Head "https://x/v2": dial tcp: lookup x: no such host'
)


def found(pod: tuple[Kind, Object], *more: tuple[Kind, Object]) -> list[Finding]:
    return list(report(make.cluster(make.job(), pod, *more), "ai", "train").findings)


def on_node(reason: str, message: str = "", **status: Any) -> tuple[Kind, Object]:
    return make.pod("train-0", owner="train", on="a", **make.waiting(reason, message, OWN), **status)


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff"])
def test_an_image_that_is_missing_is_told_with_the_command_and_lasts(reason: str) -> None:
    (image,) = found(on_node(reason, f"Back-off pulling: {NOT_FOUND.format(OWN)}"))
    assert image.why == f"its registry does not have the image {OWN}"
    assert image.fix == f"make images REGISTRY={HOST}    # on the simulator: make images"
    assert image.lasts


@pytest.mark.parametrize("own", [f"{HOST}/olmo:mine", f"{HOST}/team/olmo:1", "docker.io/library/nothing:1"])
def test_an_image_of_the_users_own_is_theirs_to_push(own: str) -> None:
    (image,) = found(
        make.pod("train-0", owner="train", on="a", **make.waiting("ErrImagePull", NOT_FOUND.format(own), own))
    )
    assert (
        image.fix == "kubectl describe pod -n ai train-0    # then push it, or name another in the workload's options"
    )
    assert image.lasts


def test_a_role_that_does_not_act_yet_is_waited_for() -> None:
    (image,) = found(on_node("ErrImagePull", UNAUTHORIZED.format(OWN)))
    assert image.why.startswith(f"its nodes may not pull {OWN}: the role AcrPull is missing, or does not act yet")
    assert not image.lasts


def test_a_registry_that_is_not_reached_is_waited_for() -> None:
    (image,) = found(on_node("ErrImagePull", NO_HOST.format(OWN)))
    assert image.why.endswith("dial tcp: lookup x: no such host")
    assert not image.lasts


def test_a_volume_that_does_not_mount_has_its_message_in_an_event() -> None:
    pod = on_node("ContainerCreating")
    message = 'MountVolume.SetUp failed for volume "data" :\n rpc error: exit status 255'
    early = make.event(pod, "Pulling", "Pulling image", at="2026-11-22T09:00:00Z")
    (mount,) = found(pod, make.event(pod, "FailedMount", message), early)
    assert (
        mount.why == 'pod train-0: FailedMount: MountVolume.SetUp failed for volume "data" : rpc error: exit status 255'
    )
    assert mount.fix == "kubectl describe pod -n ai train-0"


def test_a_large_image_on_its_way() -> None:
    pod = on_node("ContainerCreating")
    assert found(pod, make.event(pod, "Pulling", 'Pulling image "x"')) == [
        Finding('pod train-0 is being started: Pulling image "x"')
    ]


def test_a_container_that_ends_again_and_again() -> None:
    (crash,) = found(on_node("CrashLoopBackOff", "back-off 10s"))
    assert (crash.why, crash.fix) == (
        "pod train-0: CrashLoopBackOff: back-off 10s",
        "kubectl logs -n ai train-0 --previous",
    )


def test_a_pod_that_its_node_refused() -> None:
    message = (
        "Pod was rejected: Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
        "Requested: 8, Available: 7, which is unexpected"
    )
    refused = make.pod(
        "train-0", owner="train", on="a", phase="Failed", reason="UnexpectedAdmissionError", message=message
    )
    assert found(refused)[0].why == f"node a refused pod train-0: UnexpectedAdmissionError: {message}"


def test_a_pod_that_runs_waits_for_nothing() -> None:
    assert found(make.pod("train-0", owner="train", on="a", ready=True)) == []
