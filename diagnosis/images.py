"""Finds why a node cannot pull an image, from messages of containerd and registries."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config.data import data
from config.data.content_tags import content_tag, image_names
from diagnosis.cluster import POD, Cluster
from diagnosis.finding import Finding, one_line
from diagnosis.messages import cause, is_symptom, most_specific
from k8s.objects import Object

PULLING = ("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ErrRegistryUnavailable")
NEVER = "ErrImageNeverPull"
_ANONYMOUS = ("mcr.microsoft.com", "registry.k8s.io")
"""Public registries without logins: a pull secret has no effect."""
_DOCKER_HUB = "docker.io"
_ACR = re.compile(r"[\w-]+(\.[\w-]+)*\.azurecr\.(io|cn|us|de)")
_REFERENCE = re.compile(r"(?P<host>[^/]+)/(?P<name>[^:@/]+):(?P<tag>[^:@/]+)")
_NAMES = re.compile(r"/v2/\S+|scope=\S+")
"""Parts of URLs with image names, which may contain words that look like an error."""
_FAILED = "Failed to pull image"
"""Prefix of the kubelet's event for a failed pull. It has the cause when the container's message is only a back-off."""
_NO_SECRET = "FailedToRetrieveImagePullSecret"  # noqa: S105 - the reason of an event
_NO_REASON = "the kubelet gives no reason"
WRONG_PLATFORM = re.compile(
    r"no match for platform|no matching manifest for|cannot be used on this platform|exec format error"
)


@dataclass(frozen=True)
class _Pull:
    cluster: Cluster
    pod: Object
    image: str
    message: str
    look: str

    @property
    def host(self) -> str:
        first, slash, _ = self.image.partition("/")
        named = slash and (first == "localhost" or "." in first or ":" in first)
        return first if named else _DOCKER_HUB


def pull_failure(cluster: Cluster, pod: Object, image: str, message: str, look: str) -> Finding:
    bare = not cause(message.replace(image, "").partition('""')[2])  # the message is only: Back-off pulling image "..."
    events = [each for each in cluster.events(pod) if _FAILED in each["message"] and image in each["message"]]
    if events and (bare or is_symptom(message)):
        best = most_specific(events)["message"]
        message = best if bare or not is_symptom(best) else message
    end = cause(message).rpartition('": ')[2]  # containerd writes the reference three times before the cause
    pull = _Pull(cluster, pod, image, one_line(end) or _NO_REASON, look)
    words = _NAMES.sub("", message.replace(image, ""))
    known = next(each for each in _causes() if re.search(each["matches"], words))
    return _FINDINGS[known["cause"]](pull) if "cause" in known else _known(pull, known)


def wrong_platform(cluster: Cluster, pod: Object, image: str, error: str = "") -> Finding:
    node = cluster.node(pod["spec"].get("nodeName", "")) or {"metadata": {}}
    labels = node["metadata"].get("labels", {})
    platform = f"{labels.get('kubernetes.io/os', 'linux')}/{labels.get('kubernetes.io/arch', 'amd64')}"
    why = f"image {image} exists, but not for its node's platform {platform}"
    if "exec format error" in error:
        why = f"{why}; or its command is a script without a first line like #!/bin/sh"
    fix = f"docker buildx imagetools inspect {image}    # lists its platforms; build and push it for {platform}"
    return Finding(why, fix, lasts=True)


def never_pulled(image: str, look: str) -> Finding:
    why = f"image {image} is not on its node, and imagePullPolicy Never forbids a pull"
    return Finding(why, f"{look}    # then set imagePullPolicy: IfNotPresent", lasts=True)


def _refused(pull: _Pull) -> Finding:
    """Returns why a registry refuses the image. A missing role may take effect later; the other causes last."""
    if _ACR.fullmatch(pull.host) and not _is_of_others(pull):
        why = f"its nodes may not pull {pull.image}: the role AcrPull is missing, or has not taken effect yet"
        return Finding(f"{why} ({pull.message})", pull.look)
    if pull.host in _ANONYMOUS:
        why = f"{pull.host} refuses image {pull.image}, though all its images are public: the name is wrong, or a proxy"
        return Finding(f"{why} or firewall on the way refuses it ({pull.message})", pull.look, lasts=True)
    names = [secret["name"] for secret in pull.pod["spec"].get("imagePullSecrets", [])]
    absent = [event["message"] for event in pull.cluster.events(pull.pod) if event["reason"] == _NO_SECRET]
    has = f"its pull secret {' or '.join(names)} gives no access" if names else "the pod has no pull secret"
    has = one_line(absent[-1]) if absent else has
    why = f"{pull.host} refuses image {pull.image}, which {_reason(pull.host)}: {has} ({pull.message})"
    secret = f"kubectl create secret docker-registry -n {pull.pod['metadata']['namespace']} --help"
    return Finding(why, f"{secret}    # then name it in imagePullSecrets of the pod's spec", lasts=True)


def _reason(host: str) -> str:
    if _ACR.fullmatch(host):
        return "is in a registry other than the stack's"
    if host.endswith(_DOCKER_HUB):
        return "is private, or does not exist (Docker Hub answers the same for both)"
    return "is private, or has a wrong name"


def _is_of_others(pull: _Pull) -> bool:
    pods = pull.cluster.all(POD) if pull.cluster.is_complete else []
    images = [container.get("image", "") for pod in pods for container in pod["spec"]["containers"]]
    found = [_REFERENCE.fullmatch(image) for image in {*images, pull.image}]
    own = {each["host"] for each in found if each and each["name"] in image_names() and _ACR.fullmatch(each["host"])}
    return bool(own) and pull.host not in own


def _missing(pull: _Pull) -> Finding:
    """Returns a finding that the image is missing, and how to push it.

    `make images` pushes only images of `docker/`, with the tag of their current content. Users push all others.
    """
    found = _REFERENCE.fullmatch(pull.image)
    fix = f"{pull.look}    # then push it, or name another image in the pod's spec or workloadOptions"
    if found and found["name"] in image_names() and found["tag"] == content_tag(found["name"]):
        fix = f"make images REGISTRY={found['host']}    # on the simulator: make images"
    return Finding(f"its registry does not have the image {pull.image}", fix, lasts=True)


def _known(pull: _Pull, cause: Mapping[str, Any]) -> Finding:
    values = {"name": pull.host.partition(".")[0], "node": pull.pod["spec"].get("nodeName", "")}
    values |= {key: getattr(pull, key) for key in ("host", "image", "message", "look")}
    return Finding(
        cause["why"].format(**values), cause.get("fix", "{look}").format(**values), cause.get("lasts", False)
    )


@functools.cache
def _causes() -> Sequence[Mapping[str, Any]]:
    found: list[dict[str, Any]] = data.parsed(Path(__file__).with_name("pulls.yaml").read_text("utf-8"))
    return found


_FINDINGS: Mapping[str, Callable[[_Pull], Finding]] = {
    "platform": lambda pull: wrong_platform(pull.cluster, pull.pod, pull.image),
    "refused": _refused,
    "missing": _missing,
}
