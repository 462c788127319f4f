"""The part of Microsoft Graph that the Azure CLI uses: users, groups and service principals.

Shapes: https://learn.microsoft.com/graph/api (user-list, group-list, serviceprincipal-list, directoryobject-getbyids).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from http import HTTPStatus

from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError, bad_request
from simulator.azure.rest import Request
from simulator.azure.store import Body
from simulator.azure.subscription import Principal
from simulator.azure.types.managed_cluster import rules as clusters
from simulator.azure.types.user_assigned_identity import rules as identities
from simulator.azure.types.virtual_machine import rules as machines

_MANAGED = "ManagedIdentity"
_LISTS = ("users", "groups", "serviceprincipals")
_VALUE = r"'(?P<{}>[^']*)'"
_CONDITION = re.compile(
    r"(?P<list>\w+)/any\((?P<each>\w+):\s*(?P=each) eq " + _VALUE.format("held") + r"\)"
    r"|startswith\((?P<text>\w+),\s*" + _VALUE.format("start") + r"\)"
    r"|(?P<field>\w+) eq " + _VALUE.format("equal"),
    re.IGNORECASE,
)


def answer(world: World, request: Request) -> Body:
    """Answers a request below `/v1.0`. Raises ArmError, which has the shape of Graph's errors."""
    _, *parts = (part.lower() for part in request.path.strip("/").split("/"))
    objects = list(directory(world))
    match (request.method, *parts):
        case ("GET", "me"):
            message = "/me request is only valid with delegated authentication flow."
            raise bad_request(message, code="BadRequest")
        case ("POST", "directoryobjects", "getbyids"):
            ids = (request.body or {}).get("ids") or []
            return {"value": [each for each in objects if each["id"] in ids]}
        case ("GET", kind) if kind in _LISTS:
            chosen = _filter(request.query.get("$filter", ""))
            return {"value": [each for each in objects if _kind(each) == kind and chosen(each)]}
        case ("GET", kind, name) if kind in _LISTS:
            for each in objects:
                if _kind(each) == kind and name in (each["id"], each.get("userPrincipalName")):
                    return each
            message = (
                f"Resource '{name}' does not exist or one of its queried reference-property objects are not present."
            )
            raise ArmError(HTTPStatus.NOT_FOUND, "Request_ResourceNotFound", message)
    message = f"Resource not found for the segment '{'/'.join(parts)}'. The simulator serves {', '.join(_LISTS)}."
    raise ArmError(HTTPStatus.BAD_REQUEST, "BadRequest", message)


def directory(world: World) -> Iterator[Body]:
    subscription = world.subscription
    yield _application(subscription.deployer, "deployer")
    for name, principal in subscription.directory.items():
        yield _user(principal, name) if principal.upn else _application(principal, name)
    for group in {group for each in subscription.directory.values() for group in each.groups}:
        yield {"@odata.type": "#microsoft.graph.group", "id": group, "displayName": f"group of {group[:8]}"}
    for record in world.store.all(identities.TYPE):
        yield _application(identities.principal(record), record.id.name, _MANAGED)
    for machine in world.store.all(machines.TYPE):
        if own := machines.system_identity(machine):
            yield _application(Principal(object_id=own, client_id=own), machine.id.name, _MANAGED)
    for cluster in world.store.all(clusters.TYPE):
        for suffix, object_id in zip(("", "-agentpool"), clusters.identities(cluster), strict=True):
            known = Principal(object_id=object_id, client_id=object_id)
            yield _application(known, f"{cluster.id.name}{suffix}", _MANAGED)


def _user(principal: Principal, name: str) -> Body:
    own = {"@odata.type": "#microsoft.graph.user", "id": principal.object_id, "displayName": name}
    return own | {"userPrincipalName": principal.upn, "mail": principal.upn}


def _application(principal: Principal, name: str, kind: str = "Application") -> Body:
    return {
        "@odata.type": "#microsoft.graph.servicePrincipal",
        "id": principal.object_id,
        "appId": principal.client_id,
        "displayName": name,
        "servicePrincipalNames": [principal.client_id],
        "servicePrincipalType": kind,
    }


def _kind(found: Body) -> str:
    return f"{found['@odata.type'].rpartition('.')[2]}s".lower()


def _filter(text: str) -> Callable[[Body], bool]:
    """Parses the Azure CLI's conditions, joined by `or` or `and`. Raises ArmError."""
    if re.sub(r"\b(or|and)\b|[()\s]", "", _CONDITION.sub("", text)):
        message = f"Invalid filter clause: the simulator does not support '{text}'."
        raise bad_request(message, code="Request_UnsupportedQuery")
    conditions = list(_CONDITION.finditer(text))
    joined = any if " or " in text else all
    return lambda each: joined(_holds(each, condition) for condition in conditions)


def _holds(found: Body, condition: re.Match[str]) -> bool:
    if name := condition["list"]:
        return condition["held"] in found.get(name, ())
    if name := condition["text"]:
        return str(found.get(name, "")).lower().startswith(condition["start"].lower())
    return str(found.get(condition["field"], "")).lower() == condition["equal"].lower()
