"""Empties a node like `kubectl drain`, with evictions that respect disruption budgets."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

from k8s.objects import Object, has_ended
from simulator.kube.client import ApiError, KubeClient

_ENDED_WITH_NODES = ("DaemonSet", "Node")


def comes_with_nodes(pod: Object) -> bool:
    """Returns whether a DaemonSet or the node created the pod. Such a pod cannot move."""
    return any(owner["kind"] in _ENDED_WITH_NODES for owner in pod["metadata"].get("ownerReferences", []))


def to_move(pods: Iterable[Object], node: str) -> list[Object]:
    """Returns the pods that a drain must move to other nodes."""
    here = (pod for pod in pods if pod["spec"].get("nodeName") == node)
    return [pod for pod in here if not comes_with_nodes(pod) and not has_ended(pod)]


def evict(kube: KubeClient, pod: Object, most_s: int | None = None) -> bool:
    """Requests the pod's eviction, with a grace period of at most `most_s`, unless it is already ending.

    Returns False if a disruption budget forbids the eviction now. The server marks the pod as DisruptionTarget.
    """
    metadata, grace_s = pod["metadata"], pod["spec"].get("terminationGracePeriodSeconds", 30)
    if metadata.get("deletionTimestamp"):
        return True
    body: Object = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {key: metadata[key] for key in ("name", "namespace")},
    }
    if most_s is not None and most_s < grace_s:
        body["deleteOptions"] = {"gracePeriodSeconds": most_s}
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
    try:
        kube.raw("POST", path, json=body)
    except ApiError as error:
        if error.code == HTTPStatus.TOO_MANY_REQUESTS:
            return False
        if not error.not_found:
            raise
    return True
