"""Management locks (`python -m simulator fault lock`). They block changes, and clients can list them.

Sources: https://learn.microsoft.com/azure/azure-resource-manager/management/lock-resources; text:
hashicorp/terraform#17478; shape: azure-rest-api-specs, ManagementLocks_ListAtResourceGroupLevel.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError
from simulator.azure.ids import Path
from simulator.azure.rest import PathRequest
from simulator.azure.store import Body
from simulator.world.faults import Fault, FaultKind

TYPE = "Microsoft.Authorization/locks"
_SUBSCRIPTION, _EVERY_GROUP = "subscription", "group"
_GROUPS = "resourcegroups"


def check(world: World, method: str, path: Path) -> None:
    """Raises ArmError (409) if a lock forbids the request. ReadOnly forbids all changes, including POST."""
    if method in ("GET", "HEAD"):
        return
    scope, group = path.id.text, _group(path.id.text)
    deletes = method == "DELETE"
    locks = [lock for lock in _here(world, group) if deletes or lock.level == "ReadOnly"]
    if locks:
        operation = "delete" if deletes else "write"
        locked = ",".join(_scope(world, lock, group) for lock in locks)
        message = (
            f"The scope '{scope}' cannot perform {operation} operation because following scope(s) are locked: "
            f"'{locked}'. Please remove the lock and try again."
        )
        raise ArmError(HTTPStatus.CONFLICT, "ScopeLocked", message)


def view(world: World, request: PathRequest) -> Body:
    return {"value": [shown for _, shown in _at(world, request)]}


def one(world: World, request: PathRequest, *, delete: bool = False) -> Body:
    for fault, shown in _at(world, request):
        if shown["name"] == request["lock"].lower():
            if delete:
                world.faults.remove(fault)
            return shown
    if delete:
        return {}
    raise ArmError(HTTPStatus.NOT_FOUND, "LockNotFound", f"The lock '{request['lock']}' could not be found.")


def of_groups(faults: Iterable[Fault], groups: Iterable[str]) -> list[str]:
    """Returns the texts of the locks that block the deletion of these resource groups (names)."""
    return [str(lock) for lock in faults if lock.kind is FaultKind.LOCK and any(_covers(lock, each) for each in groups)]


def _here(world: World, group: str) -> list[Fault]:
    return [lock for lock in world.faults.load() if lock.kind is FaultKind.LOCK and _covers(lock, group)]


def _at(world: World, request: PathRequest) -> list[tuple[Fault, Body]]:
    group = _group(f"{request['scope']}/")
    return [(lock, _lock(world, lock, group)) for lock in _here(world, group) if bool(group) != _is_above(lock)]


def _covers(lock: Fault, group: str) -> bool:
    return _is_above(lock) or (bool(group) and lock.scope.lower() in (_EVERY_GROUP, group.lower()))


def _is_above(lock: Fault) -> bool:
    return lock.scope == _SUBSCRIPTION


def _group(scope: str) -> str:
    parts = scope.split("/")
    return parts[4] if len(parts) > 4 and parts[3].lower() == _GROUPS else ""


def _scope(world: World, lock: Fault, group: str) -> str:
    subscription = f"/subscriptions/{world.subscription.subscription_id}"
    return subscription if _is_above(lock) else f"{subscription}/resourceGroups/{group}"


def _lock(world: World, lock: Fault, group: str) -> Body:
    name = f"simulated-{lock.level.lower()}"
    properties = {"level": lock.level, "notes": "set by: python -m simulator fault lock"}
    return {
        "id": f"{_scope(world, lock, group)}/providers/{TYPE}/{name}",
        "type": TYPE,
        "name": name,
        "properties": properties,
    }
