from __future__ import annotations

import pytest

from diagnosis.cluster import Kind
from diagnosis.finding import Finding
from k8s.objects import Object
from tests.support.case_files import case_table
from tests.unit.diagnosis import objects as make

ACR = "contoso4082.azurecr.io/team/train:1"
_RESOLVE = 'failed to pull and unpack image "{0}": failed to resolve reference "{0}": '
_TOKEN = _RESOLVE + "failed to authorize: failed to fetch anonymous token: unexpected status from GET request to "


def found(image: str, message: str, *more: tuple[Kind, Object], reason: str = "ErrImagePull") -> Finding:
    pod = make.pod("train-0", owner="train", on="a", **make.waiting(reason, message.format(image), image))
    (finding,) = make.diagnosed(make.job(), pod, *more).findings
    return finding


@case_table(__file__, "registries", token=_TOKEN, resolve=_RESOLVE)
@pytest.mark.parametrize("wrapped", ["{}", 'Back-off pulling image "{{0}}": ErrImagePull: {}'])
def test_finds_the_cause_in_a_registrys_error(image: str, message: str, why: str, lasts: bool, wrapped: str) -> None:
    finding = found(image, wrapped.format(message))
    assert why in finding.why
    assert finding.lasts == lasts
    assert ("AcrPull" in finding.why) == (image == ACR and "role" in why)


@case_table(__file__, "reasons")
def test_other_reasons_keep_their_message(reason: str, message: str, why: str, lasts: bool) -> None:
    finding = found(ACR, message, reason=reason)
    assert why in finding.why
    assert finding.lasts == lasts


@case_table(__file__, "loops")
def test_a_crash_loop_shows_how_the_container_ended(end: Object, why: str) -> None:
    status = make.waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container")
    status["containerStatuses"][0]["lastState"] = {"terminated": end}
    pod = make.pod("train-0", owner="train", on="a", **status)
    (finding,) = make.diagnosed(make.job(), pod).findings
    assert why in finding.why


MOUNT = 'MountVolume.MountDevice failed for volume "data" : rpc error: code = Internal desc = '
NOTICE = "*** blobfuse2: A new version [2.5.0] is available. Consider upgrading to latest version. ***"
LATE = "Unable to attach or mount volumes: unmounted volumes=[data]: timed out waiting for the condition"
LONG, ADDRESSES = "x" * 900, "10.0.0.1:{IPAddress:10.0.0.1 NCVersion:0} " * 60
CIFS = (
    "mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t cifs -o password=abc/d+=="
    " //a.file.core.windows.net/s /x\nOutput: mount error(13): Permission denied\nRefer to the "
    "mount.cifs(8) manual page (e.g. man mount.cifs) and kernel log messages (dmesg)"
)


@case_table(__file__, "mounts", mount=MOUNT, late=LATE, notice=NOTICE, cifs=CIFS, long=LONG, addresses=ADDRESSES)
def test_shows_the_event_of_a_mount_that_has_the_cause(messages: list[str], why: str) -> None:
    pod = make.pod("train-0", owner="train", on="a", **make.waiting("ContainerCreating"))
    events = [make.event(pod, "FailedMount", text, f"2026-11-22T10:0{at}:00Z") for at, text in enumerate(messages)]
    (finding,) = make.diagnosed(make.job(), pod, *events).findings
    assert finding.why.rstrip(".").endswith(why)
    assert "fuse2" not in finding.why
    assert "abc/d" not in finding.why
