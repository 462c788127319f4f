"""Kubernetes objects as JSON, and their conditions and phases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Object = dict[str, Any]


def condition(obj: Object, kind: str) -> Object:
    """Returns the condition of the type `kind`, or an empty map."""
    found: Sequence[Object] = obj.get("status", {}).get("conditions") or []
    return next((entry for entry in found if entry["type"] == kind), {})


def holds(obj: Object, kind: str) -> bool:
    return bool(condition(obj, kind).get("status") == "True")


def is_ready(pod: Object) -> bool:
    return holds(pod, "Ready") and not pod["metadata"].get("deletionTimestamp")


def has_ended(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
