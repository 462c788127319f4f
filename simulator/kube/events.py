"""Events of objects, as in `kubectl describe`."""

from __future__ import annotations

import datetime
import logging
from typing import Literal

import httpx

from k8s.objects import Object
from simulator.kube.client import ApiError, KubeClient

_log = logging.getLogger(__name__)


def record(
    kube: KubeClient,
    obj: Object,
    severity: Literal["Normal", "Warning"],
    reason: str,
    message: str,
    source: dict[str, str],
) -> None:
    """Creates an event, in `default` for objects without a namespace. Logs failures, like Kubernetes components.

    A namespace that is being deleted accepts no events.
    """
    metadata = obj["metadata"]
    at = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    involved = {key: obj[key] for key in ("apiVersion", "kind")}
    involved |= {key: metadata[key] for key in ("name", "namespace", "uid") if key in metadata}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{metadata['name']}.", "namespace": metadata.get("namespace", "default")},
        "involvedObject": involved,
        "type": severity,
        "reason": reason,
        "message": message[:1024],  # the API server's limit
        "source": source,
        "count": 1,
        "firstTimestamp": at,
        "lastTimestamp": at,
    }
    try:
        kube.create(event)
    except (ApiError, httpx.HTTPError) as error:
        _log.info("no event for %s %s: %s", obj["kind"].lower(), metadata["name"], error)
