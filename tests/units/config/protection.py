"""What a stack file protects, by values and not by the marks that the program reads (config/reading/protection.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

TRUE = ("true", True)
SAFE: Mapping[str, tuple[Any, ...]] = {
    "cluster.entra": TRUE,
    "cluster.localAccounts": ("false", False),
    "network.private": TRUE,
    "network.policy": ("cilium", "calico"),
    "storage.protect": TRUE,
    "storage.auth": ("identity",),
}
"""Values that a fix must leave as they are."""
STATED = ("cluster.authorizedIpRanges", "cluster.adminGroupObjectIds", "cluster.maintenanceWindow")
"""Keys that a fix must leave set, a list with as many entries."""


def loses(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Returns the protections of `before` that `after` does not have."""
    return list(_lost(before, after))


def _lost(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for key, safe in SAFE.items():
        if at(before, key) in safe and at(after, key) not in safe:
            yield key
    for key in STATED:
        if (stated := at(before, key)) and len(entries(at(after, key))) < len(entries(stated)):
            yield key
    for name, container in containers(before):
        now = dict(containers(after)).get(name, {})
        days, later = container.get("days"), now.get("days", 0)
        if isinstance(days, int) and isinstance(later, int) and not isinstance(days, bool) and 1 <= days < later:
            yield f"days of {name}"
        letters = container.get("permissions")
        if isinstance(letters, str) and set(str(now.get("permissions", ""))) - set(letters) - set("rl"):
            yield f"permissions of {name}"


def containers(stack: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    found = at(stack, "storage.containers")
    for name, container in found.items() if isinstance(found, Mapping) else ():
        if isinstance(container, Mapping):
            yield name, container


def entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []


def at(stack: Any, key: str) -> Any:
    for part in key.split("."):
        stack = stack.get(part) if isinstance(stack, Mapping) else None
    return stack
