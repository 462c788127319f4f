"""Why images cannot be pulled, in the words of containerd, registries and the kubelet, and what advice follows."""

from __future__ import annotations

import pytest

from diagnosis.cluster import Kind
from diagnosis.finding import Finding
from diagnosis.report import report
from k8s.objects import Object
from tests.unit.diagnosis import objects as make

ACR, NGC, HUB = "contoso4082.azurecr.io/team/train:1", "nvcr.io/4082/team/agent:1.2", "docker.io/example/trainer:2"
_RESOLVE = 'failed to pull and unpack image "{0}": failed to resolve reference "{0}": '
_TOKEN = _RESOLVE + "failed to authorize: failed to fetch anonymous token: unexpected status from GET request to "


def found(image: str, message: str, *more: tuple[Kind, Object], reason: str = "ErrImagePull") -> Finding:
    pod = make.pod("train-0", owner="train", on="a", **make.waiting(reason, message.format(image), image))
    (finding,) = report(make.cluster(make.job(), pod, *more), "ai", "train").findings
    return finding


CASES = [
    (ACR, "no match for platform in manifest: not found", "is there, but not for the platform", True),
    (ACR, "no matching manifest for linux/amd64 in the manifest list entries", "not for the platform", True),
    (ACR, _TOKEN + "https://contoso4082.azurecr.io/oauth2/token: 401 Unauthorized", "the role AcrPull", False),
    (ACR, _RESOLVE + "unexpected status from HEAD request to https://contoso4082.azurecr.io/v2/: 403 Forbidden",
     "the role AcrPull", False),
    (ACR, _RESOLVE + "denied: client with IP '20.1.2.3' is not allowed access. Refer https://aka.ms/acr/firewall",
     "firewall of registry contoso4082.azurecr.io", True),
    (ACR, _RESOLVE + "manifest unknown: manifest tagged by \"1\" is not found", "does not have the image", True),
    (NGC, _TOKEN + "https://nvcr.io/proxy_auth?scope=repository: 403 Forbidden", "no pull secret", True),
    (HUB, _RESOLVE + "pull access denied, repository does not exist or may require authorization: server message: "
     "insufficient_scope: authorization failed", "is private, or does not exist", True),
    ("example/trainer:2", _RESOLVE + "pull access denied", "docker.io refuses image example/trainer:2", True),
    ("ghcr.io/example/x:1", _TOKEN + "https://ghcr.io/token?scope=x: 403 Forbidden", "ghcr.io refuses", True),
    ("mcr.microsoft.com/x:1", _RESOLVE + "unexpected status from HEAD request to https://mcr.microsoft.com/v2/: 403 "
     "Forbidden", "though all its images are public", True),
    ("registry.example.com:5000/x:1", _RESOLVE + "unauthorized: authentication required", "com:5000 refuses", True),
    ("notazurecr.io/x:1", _RESOLVE + "403 Forbidden", "notazurecr.io refuses", True),
    (HUB, 'httpReadSeeker: failed open: unexpected status code https://registry-1.docker.io: 429 Too Many Requests - '
     'Server message: toomanyrequests: You have reached your pull rate limit.', "passes by itself", False),
    ("mcr.microsoft.com/x:1", "pull QPS exceeded", "passes by itself", False),
    ("corp.example.com/x:1", _RESOLVE + "failed to do request: Head \"https://corp.example.com/v2/x\": tls: failed to "
     "verify certificate: x509: certificate signed by unknown authority", "does not trust the certificate", True),
    ("corp.example.com/x:1", "dial tcp: lookup corp.example.com on 10.0.0.10:53: no such host", "not reach", False),
    (ACR, "failed to authorize: failed to fetch oauth token: Post \"https://contoso4082.azurecr.io\": dial tcp "
     "20.62.1.1:443: i/o timeout", "does not reach registry contoso4082.azurecr.io", False),
    (NGC, _RESOLVE + "unexpected status from HEAD request to https://nvcr.io/v2/: 503 Service Unavailable",
     "has an internal error", False),
    (NGC, _RESOLVE + "unexpected status from HEAD request to https://nvcr.io/v2/: 402 Payment Required",
     "nvcr.io refuses", True),
    (NGC, _RESOLVE + "unexpected media type text/html for sha256:4082: not found", "does not reach", False),
    ("index.docker.io/x/x:1", _RESOLVE + "not found: does not exist or no pull access", "Docker Hub answers", True),
    (HUB, "failed to extract layer sha256:4031: write /var/lib/containerd/x: no space left on device",
     "node a has no space left", False),
    (ACR, "failed to copy: httpReadSeeker: failed open: unexpected status code https://wus1.blob.core.windows.net/a/"
     "docker/registry/v2/blobs/sha256/ab/data: 403 Server failed to authenticate the request",
     "the storage of its layers refuses", False),
    ("ghcr.io/example/denied:404", _RESOLVE + "unexpected status from HEAD request to "
     "https://ghcr.io/v2/example/denied/manifests/403: 404 Not Found", "does not have the image", True),
    (ACR, "unexpected media type application/vnd.oci.empty.v1+json for sha256:4082: not found",
     "is not a container image", True),
    (ACR, "failed to get reader from content store: content digest sha256:4082: not found", "is incomplete", False),
    (ACR, "unexpected commit digest sha256:4031, expected sha256:4082: failed precondition", "is incomplete", False),
    ("example.com/forbidden/not-found-401:404", _RESOLVE + "something else", "cannot be pulled", False),
]  # fmt: skip


@pytest.mark.parametrize(("image", "message", "why", "lasts"), CASES)
@pytest.mark.parametrize("wrapped", ["{}", 'Back-off pulling image "{{0}}": ErrImagePull: {}'])
def test_each_answer_of_a_registry_has_its_cause(image: str, message: str, why: str, lasts: bool, wrapped: str) -> None:
    finding = found(image, wrapped.format(message))
    assert why in finding.why
    assert finding.lasts == lasts
    assert ("AcrPull" in finding.why) == (image == ACR and "role" in why)


@pytest.mark.parametrize(
    ("reason", "message", "why", "lasts"),
    [
        ("ErrImageNeverPull", "Container image is not present", "imagePullPolicy Never forbids to pull it", True),
        ("InvalidImageName", 'invalid reference format', "is no name of an image", True),
        ("ImageInspectError", "Failed to inspect image: EOF", "ImageInspectError", False),
        ("CreateContainerConfigError", 'secret "sas" not found', 'CreateContainerConfigError: secret "sas"', False),
        ("CreateContainerError", "container name is reserved", "CreateContainerError: container name is", False),
        ("RunContainerError", "exec /bin/x: exec format error: unknown", "linux/amd64; or its command is", True),
    ],
)  # fmt: skip
def test_other_reasons_keep_their_message(reason: str, message: str, why: str, lasts: bool) -> None:
    finding = found(ACR, message, reason=reason)
    assert why in finding.why
    assert finding.lasts == lasts


@pytest.mark.parametrize(
    ("end", "why"),
    [
        ({"exitCode": 137, "reason": "OOMKilled"}, "it ended with OOMKilled (exit code 137)"),
        ({"exitCode": 128, "reason": "StartError", "message": 'exec: "trian": not found'}, '"trian": not found'),
        ({"exitCode": 127, "reason": "ContainerCannotRun", "message": "no nvidia runtime"}, "no nvidia runtime"),
        ({"exitCode": 0, "reason": "Completed"}, "it ended with Completed (exit code 0)"),
        ({"exitCode": 1, "reason": "Error"}, "it ended with exit code 1"),
        ({"exitCode": 1, "reason": "Error", "message": "CUDA: no device"}, "exit code 1: CUDA: no device"),
    ],
)  # fmt: skip
def test_a_container_that_loops_says_how_it_ended(end: Object, why: str) -> None:
    status = make.waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container")
    status["containerStatuses"][0]["lastState"] = {"terminated": end}
    pod = make.pod("train-0", owner="train", on="a", **status)
    (finding,) = report(make.cluster(make.job(), pod), "ai", "train").findings
    assert why in finding.why


MOUNT = 'MountVolume.MountDevice failed for volume "data" : rpc error: code = Internal desc = '
NOTICE = "*** blobfuse2: A new version [2.5.0] is available. Consider upgrading to latest version. ***"
LATE = "Unable to attach or mount volumes: unmounted volumes=[data]: timed out waiting for the condition"
CIFS = (
    "mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t cifs -o password=abc/d+=="
    " //a.file.core.windows.net/s /x\nOutput: mount error(13): Permission denied\nRefer to the "
    "mount.cifs(8) manual page (e.g. man mount.cifs) and kernel log messages (dmesg)"
)


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([MOUNT + f"exit status 1 {NOTICE}\nError: failed to mount [no such host]"], "[no such host]"),
        ([MOUNT + "the cause", LATE], "the cause"),
        ([MOUNT + "the cause", f"(combined from similar events): {LATE}", ""], "the cause"),
        ([f"(combined from similar events): {MOUNT}access denied by server"], "access denied by server"),
        ([MOUNT + "the cause", MOUNT + "context deadline exceeded"], "the cause"),
        ([MOUNT + "the cause", MOUNT + "An operation with the given Volume ID data already exists"], "the cause"),
        ([f'failed for "{"0a" * 32}": no IPs left with NC Status: , IP config request is [..]'], "for: no IPs left"),
        ([MOUNT + "the cause", MOUNT + "an operation with the given Volume ID data already exists"], "the cause"),
        ([MOUNT + "the cause", MOUNT + f"exit status 1 {NOTICE}"], "the cause"),
        ([MOUNT + CIFS], "mount error(13): Permission denied"),
        ([MOUNT + "exit status 1, AccountKey=***, Error: no such host"], "Error: no such host"),
        ([LATE], "timed out waiting for the condition"),
        ([MOUNT + "x" * 900 + " the cause"], "the cause"),
        ([MOUNT + "the cause, " + "10.0.0.1:{IPAddress:10.0.0.1 NCVersion:0} " * 60], "the cause, {...}"),
    ],
)  # fmt: skip
def test_of_several_events_of_a_mount_the_one_with_the_cause_is_shown(messages: list[str], why: str) -> None:
    pod = make.pod("train-0", owner="train", on="a", **make.waiting("ContainerCreating"))
    events = [make.event(pod, "FailedMount", text, f"2026-11-22T10:0{at}:00Z") for at, text in enumerate(messages)]
    (finding,) = report(make.cluster(make.job(), pod, *events), "ai", "train").findings
    assert finding.why.rstrip(".").endswith(why)
    assert "fuse2" not in finding.why
    assert "abc/d" not in finding.why
