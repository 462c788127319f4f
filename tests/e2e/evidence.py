from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx

from k8s.objects import Object, is_ready
from simulator.kube.client import ApiError, KubeClient, NoKindMatch
from tests.support.world import World, log

_WARNINGS, _LOG_LINES = 15, 15


def report(world: World) -> str:
    kubeconfigs = sorted(world.home.glob("clusters/*/admin.kubeconfig"))
    clusters = [line for kubeconfig in kubeconfigs for line in _cluster(kubeconfig)]
    file = world.home / "daemon.log"
    lines = file.read_text(errors="replace").splitlines() if file.exists() else ["does not exist"]
    return "\n".join([*clusters, "the daemon's log:", *lines[-_LOG_LINES:]])


def _cluster(kubeconfig: Path) -> Iterator[str]:
    yield f"cluster {kubeconfig.parent.name}:"
    try:
        with KubeClient.from_kubeconfig(kubeconfig.read_text()) as kube:
            for pod in kube.list("v1", "Pod"):
                yield _pod(pod)
                if pod["status"].get("phase") == "Failed":
                    text = log(kube, pod["metadata"]["name"], pod["metadata"]["namespace"])
                    yield from text.splitlines()[-_LOG_LINES:]
            warnings = [event for event in kube.list("v1", "Event") if event.get("type") == "Warning"]
            yield from (_event(event) for event in warnings[-_WARNINGS:])
            for job in kube.list("batch.volcano.sh/v1alpha1", "Job"):  # last: the kind may not exist
                yield f"  Volcano's {job['metadata']['name']}: {job.get('status')}"
    except (ApiError, NoKindMatch, httpx.HTTPError, OSError) as error:  # the cluster may be stopping or deleted
        yield f"{type(error).__name__}: {error}"


def _pod(pod: Object) -> str:
    metadata, status = pod["metadata"], pod["status"]
    ready = "ready" if is_ready(pod) else "not ready"
    terminating = ", terminating" if metadata.get("deletionTimestamp") else ""
    what = f"{status.get('phase')}, {ready}{terminating} on {pod['spec'].get('nodeName', 'no node')}"
    return f"  {metadata['namespace']}/{metadata['name']} since {metadata['creationTimestamp']}: {what}"


def _event(event: Object) -> str:
    about = event["involvedObject"]
    return f"  {about['kind']} {about.get('name')}: {event.get('reason')}: {event.get('message')}"
