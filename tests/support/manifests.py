from __future__ import annotations

from typing import Any

from k8s.objects import Object


def manifest(
    api: str, kind: str, name: str, namespace: str = "", *, labels: dict[str, str] | None = None, **content: Any
) -> Object:
    """`content` has the object's other fields, such as `spec`."""
    metadata: Object = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if labels is not None:
        metadata["labels"] = labels
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **content}
