"""Field managers: the first update of an object after its creation by POST moves fields to the resource's manager.

These are the fields of kubectl and of the creating request. Apply can then remove them later. The official plugin does
the same (provider/pkg/await/await.go, fixCSAFieldManagers).
"""

from __future__ import annotations

import copy
from typing import Any

from k8s.objects import Object

CREATOR = "pulumi-kubernetes"
_PLUGINS = (CREATOR, "pulumi-kubernetes.exe", "pulumi-resource-kubernetes")
_HANDED_OVER = (("kubectl", "Apply"), ("kubectl", "Update"), ("before-first-apply", "Update")) + tuple(
    (name, "Update") for name in _PLUGINS
)
"""Prefixes of manager names, each with an operation. kubectl-edit matches too, as in fluxcd/pkg/ssa."""


def hand_over(live: Object, manager: str, *, forgotten: bool = False) -> list[Object] | None:
    """Returns a JSON patch that gives `manager` the fields of the creating requests, or None if nothing must move.

    If the object is `forgotten`, also moves the fields of earlier managers, which the engine no longer knows.
    """
    entries: list[Object] = live.get("metadata", {}).get("managedFields") or []
    given = [entry for entry in entries if _is_handed_over(entry) or (forgotten and _is_former(entry, manager))]
    if not given:
        return None
    kept = [entry for entry in entries if entry not in given]
    own = next((entry for entry in kept if _key(entry) == (manager, "Apply")), None)
    fields = merge_fields(*(entry.get("fieldsV1", {}) for entry in [*([own] if own else []), *given]))
    merged = copy.deepcopy(own or given[0]) | {"manager": manager, "operation": "Apply", "fieldsV1": fields}
    entries = [entry for entry in kept if entry is not own] + [merged]
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]},
    ]


def merge_fields(*sets: Object) -> Object:
    union: Object = {}
    for fields in sets:
        for name, nested in fields.items():
            union[name] = merge_fields(union.get(name, {}), nested)
    return union


def has_creator(live: Object) -> bool:
    """Returns whether the creating request still owns fields. If so, a dry run must force the apply."""
    entries = live.get("metadata", {}).get("managedFields") or []
    return any(entry.get("manager") in _PLUGINS and entry.get("operation") == "Update" for entry in entries)


def is_pulumis(live: Object) -> bool:
    entries = live.get("metadata", {}).get("managedFields") or []
    return any(str(entry.get("manager")).startswith(_PLUGINS) for entry in entries)


def owned(live: Object, path: tuple[str, ...], *, by: str, others: bool = False) -> bool:
    """Returns whether the manager `by` owns the field at `path`.

    With `others`, returns whether any other manager owns it.
    """
    for entry in live.get("metadata", {}).get("managedFields") or []:
        fields: Any = entry.get("fieldsV1", {})
        for name in path:
            fields = fields.get(f"f:{name}") if isinstance(fields, dict) else None
        if fields is not None and (entry.get("manager") == by) != others:
            return True
    return False


def _is_former(entry: Object, manager: str) -> bool:
    name, operation = _key(entry)
    return operation == "Apply" and name.startswith(f"{CREATOR}-") and name != manager


def _is_handed_over(entry: Object) -> bool:
    manager, operation = _key(entry)
    found = any(manager.startswith(name) and operation == wanted for name, wanted in _HANDED_OVER)
    return found and not entry.get("subresource")


def _key(entry: Object) -> tuple[str, str]:
    return str(entry.get("manager")), str(entry.get("operation"))
