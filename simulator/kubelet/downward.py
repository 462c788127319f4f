"""The downward API: a pod's fields and resources in its environment and files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from k8s.objects import Object
from k8s.quantities import value
from simulator.kubelet.errors import VolumeNotReady

_NODE_LIMITS = ("cpu", "memory", "ephemeral-storage")


def field_text(pod: Object, path: str) -> str:
    """Returns the text of a field: `metadata.name`, `metadata.labels['a']`, `spec.nodeName`, `status.podIP`, ..."""
    if "[" in path:
        parent, _, key = path.partition("[")
        return str((_walk(pod, parent) or {}).get(key.strip("]").strip("'\""), ""))
    found = _walk(pod, path)
    if isinstance(found, dict):
        return "\n".join(f'{key}="{text}"' for key, text in sorted(found.items()))
    return "" if found is None else str(found)


def resource_text(selector: Object, pod: Object, container: str, allocatable: Mapping[str, str]) -> str:
    """Returns a request or limit of a container, divided by the divisor and rounded up.

    `container` is the default for containerName. Without a limit, returns the node's allocatable amount. Raises
    VolumeNotReady if the container is missing. Source: k8s.io/kubernetes, pkg/api/v1/resource
    (ExtractContainerResourceValue, MergeContainerResourceLimits).
    """
    spec, wanted = pod["spec"], selector.get("containerName") or container
    containers = {c["name"]: c for c in (*spec["containers"], *spec.get("initContainers", []))}
    if wanted not in containers:
        raise VolumeNotReady(f"container {wanted} not found")
    kind, _, name = selector["resource"].partition(".")
    amount = value(containers[wanted].get("resources", {}).get(kind, {}).get(name, 0))
    if not amount and kind == "limits" and name in _NODE_LIMITS:
        amount = value(allocatable.get(name, 0))
    return str(math.ceil(amount / (value(selector.get("divisor", 0)) or 1)))


def _walk(node: Any, path: str) -> Any:
    for part in path.split("."):
        node = (node or {}).get(part)
    return node
