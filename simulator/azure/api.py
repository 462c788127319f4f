"""Resource Manager's REST API without HTTP: maps requests to responses."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import Any

from simulator.azure import (
    api_versions,
    authorization,
    faults,
    locks,
    lookups,
    node_group,
    providers,
    reservations,
    tenancy,
)
from simulator.azure.arm_world import World
from simulator.azure.errors import (
    ArmError,
    bad_request,
    group_being_deleted,
    group_not_found,
    invalid,
    not_allowed,
    not_found,
    parent_not_found,
)
from simulator.azure.ids import GROUP_TYPE, Path, ResourceId, parse
from simulator.azure.kind import Kind
from simulator.azure.operations import Operations, remove
from simulator.azure.polling import Polling
from simulator.azure.resource_types import kinds
from simulator.azure.rest import CORRELATION, CREATOR, PathRequest, Request, Response
from simulator.azure.schema import Schema, merged, schemas
from simulator.azure.store import Body, Record

_SUBSCRIPTION_PARTS = 2  # slashes in `/subscriptions/<id>`
_LOCATION = "location"


class Api:
    """The request handler. `handle` raises ArmError for what Azure would reject."""

    def __init__(self, world: World, operations: Operations, endpoint: str) -> None:
        self._world, self._operations, self._polling = world, operations, Polling(world, endpoint)

    def handle(self, request: Request) -> Response:
        faults.check_rate(self._world, request.method)
        path = parse(request.path)
        authorization.check(self._world, request, path)
        if looked_up := lookups.find(request):
            return self._look_up(*looked_up, path)
        if path is None:
            message = f"The path '{request.path}' names nothing in Azure Resource Manager."
            raise ArmError(HTTPStatus.NOT_FOUND, "NotFound", message)
        self._check_subscription(path)
        locks.check(self._world, request.method, path)
        special = self._special(request, path)
        if special is not None:
            return special
        schema = _schema(path, request.query.get("api-version", ""))
        self._check_version(request, schema.type, path)
        kind = kinds()[schema.type.lower()]
        if path.tail:
            return self._collection_or_action(request, path, kind)
        resource = ResourceId(path.scope, schema.type, path.names)
        _check_scope(resource, schema)
        node_group.check_change(self._world, request, resource)
        match request.method:
            case "PUT":
                return self._put(request, resource, schema, kind)
            case "PATCH":
                return self._patch(request, resource, schema, kind)
            case "DELETE":
                return self._delete(resource, kind)
            case "GET":
                record = self._find(resource)
                return Response(HTTPStatus.OK, kind.view(self._world, record), {CREATOR: record.correlation})
            case "HEAD":  # as in azure-rest-api-specs: ResourceGroups_CheckExistence, Resources_CheckExistenceById
                self._find(resource)
                return Response(HTTPStatus.NO_CONTENT)
        raise not_allowed(request.method, f"a {schema.type}")

    # -- changing ------------------------------------------------------------------------------------------------------

    def _put(self, request: Request, resource: ResourceId, schema: Schema, kind: Kind) -> Response:
        providers.check_registered(self._world, schema.type)
        self._check_group(resource.group_id)
        body = _object(request.body)
        if problems := schema.problems(body):
            raise invalid(problems)
        with self._world.store.lock:
            resource = self._canonical(resource)
            existing = self._world.store.get(resource)
            if existing:
                kind.check_idle(self._world, existing)
            elif problems := schema.name_problems(resource.name):
                raise invalid(problems)
            record = self._world.store.get(resource) or self._new(resource, request)
            kind.put(self._world, record, schema.complete(body), existing)
        status = HTTPStatus.OK if existing else HTTPStatus.CREATED
        if not kind.asynchronous:
            return Response(status, kind.view(self._world, record))
        return self._polling.first_response(status, record, kind, self._operations.start(record.id))

    def _new(self, resource: ResourceId, request: Request) -> Record:
        created = {faults.CREATED: self._world.faults.clock()}
        return Record(resource, {}, correlation=request.headers.get(CORRELATION, ""), facts=created)

    def _patch(self, request: Request, resource: ResourceId, schema: Schema, kind: Kind) -> Response:
        """Merges the changes into the stored body (RFC 7396), because the type's rules check complete bodies."""
        changes = _object(request.body)
        record = self._find(resource)
        if not kind.patches_tags:
            return self._put(replace(request, body=merged(record.body, changes)), record.id, schema, kind)
        shown = kind.view(self._world, record)  # clients (`az identity update`) may also send unchanged properties
        if merged(shown, {name: value for name, value in changes.items() if name != "tags"}) != shown:
            raise bad_request("Only 'tags' can be patched: {\"tags\": {...}}.", code="InvalidParameter")
        if problems := [problem for problem in schema.problems(changes) if problem.path.startswith("tags")]:
            raise invalid(problems)
        with self._world.store.lock:
            record = self._find(resource)
            if "tags" in changes:
                record.body["tags"] = changes["tags"] or {}
                self._world.store.put(record)
        return Response(HTTPStatus.OK, kind.view(self._world, record))

    def _delete(self, resource: ResourceId, kind: Kind) -> Response:
        with self._world.store.lock:
            record = self._world.store.get(resource)
            if record is None:
                if resource.type == GROUP_TYPE:
                    raise group_not_found(resource.name)
                return Response(HTTPStatus.NO_CONTENT)
            kind.check_delete(self._world, record)
            if not kind.asynchronous and not kind.deleted_later:
                remove(self._world, record)
                return Response(HTTPStatus.OK, kind.view(self._world, record) if kind.shown_deleted else None)
            record.state = "Deleting"
            self._world.store.put(record)
        return self._polling.first_response(HTTPStatus.ACCEPTED, record, kind, self._operations.start(record.id))

    # -- reading -------------------------------------------------------------------------------------------------------

    def _collection_or_action(self, request: Request, path: Path, kind: Kind) -> Response:
        if act := kind.actions.get(path.tail.lower()):
            if request.method != "POST":
                raise not_allowed(request.method, "an action")
            record = self._find(ResourceId(path.scope, _schema(path).type, path.names))
            answer = act(self._world, record, request.query, request.body or {})
            if isinstance(answer, Record):
                return self._polling.result_at(answer)
            if answer is not None:
                return Response(HTTPStatus.OK, answer)
            now = self._find(record.id)
            if now.busy:
                return self._polling.first_response(HTTPStatus.ACCEPTED, now, kind, self._operations.start(now.id))
            return Response(HTTPStatus.NO_CONTENT)
        if request.method != "GET":
            raise not_allowed(request.method, "a list")
        self._check_group(path.id.group_id)
        listed = _schema(path).type
        scope = path.scope
        if path.names:  # a list of child resources: the parent must exist
            scope = self._find(ResourceId(path.scope, listed.rpartition("/")[0], path.names)).id.text
        records = [record for record in self._world.store.all(listed) if record.id.key.startswith(f"{scope}/".lower())]
        records += node_group.groups(self._world) if listed == GROUP_TYPE else []
        chosen = kind.chosen(self._world, scope, records, request.query.get("$filter", ""))
        return Response(HTTPStatus.OK, {"value": [kind.view(self._world, record) for record in chosen]})

    def _look_up(self, lookup: lookups.Lookup, request: PathRequest, resource_path: Path | None) -> Response:
        scope = request.names.get("scope") or "/".join(("", "subscriptions", request.names.get("subscription", "")))
        if "group" in request.names:
            scope += f"/resourceGroups/{request['group']}"
        path = parse(f"{scope}/providers/{lookup.what}")
        if path is not None and path.scope.count("/") >= _SUBSCRIPTION_PARTS:
            tenancy.check_subscription(self._world.subscription, path.scope.split("/")[2])
            self._check_group(path.id.group_id)
        location = request.names.get("region", "")
        what = f"{lookup.what}/locations/{lookup.path.rpartition('/')[2]}" if location else lookup.what
        api_versions.check(request.query.get("api-version", ""), what, self._regions, location)
        if resource_path and "group" in request.names:  # for a part of a resource (a route)
            locks.check(self._world, lookup.method, resource_path)
        found = lookup.view(self._world, request)
        if isinstance(found, Response):
            return found
        if lookup.method != "DELETE":
            return Response(HTTPStatus.OK, found)
        return Response(HTTPStatus.OK if found else HTTPStatus.NO_CONTENT)

    def _special(self, request: Request, path: Path) -> Response | None:
        """Returns the response for an operation or a capacity reservation, which are not stored, else None."""
        if operation := self._polling.find(path):
            return operation
        if request.method == "GET" and reservations.is_about(self._world, path):
            self._check_version(request, reservations.TYPE, path)
            return Response(HTTPStatus.OK, reservations.view(self._world, path))
        return None

    # -- checks --------------------------------------------------------------------------------------------------------

    def _check_subscription(self, path: Path) -> None:
        parts = path.scope.split("/")
        if len(parts) < 3 or parts[1] != "subscriptions":
            message = "The request did not have a subscription or a valid tenant level resource provider."
            raise ArmError(HTTPStatus.NOT_FOUND, "MissingSubscription", message)
        tenancy.check_subscription(self._world.subscription, parts[2])

    @property
    def _regions(self) -> tuple[str, ...]:
        return tuple(self._world.subscription.regions)

    def _check_version(self, request: Request, resource_type: str, path: Path) -> None:
        group = path.id.group_id
        found = self._world.store.get(group) if group else None
        location = found.body[_LOCATION] if found else ""
        api_versions.check(request.query.get("api-version", ""), resource_type, self._regions, location)

    def _check_group(self, group: ResourceId | None) -> None:
        if group and not (self._world.store.get(group) or node_group.find(self._world, group)):
            raise group_not_found(group.name)

    def _canonical(self, resource: ResourceId) -> ResourceId:
        if existing := self._world.store.get(resource):
            return existing.id
        if group := resource.group_id:
            found = self._world.store.get(group)
            if found is None:
                raise group_not_found(group.name)
            if found.state == "Deleting":
                raise group_being_deleted(group.name)
        if resource.is_child:
            above = self._world.store.get(resource.parent)
            if above is None:
                raise parent_not_found(resource.parent.type, resource.parent.name)
            return above.id.child(resource.type.rpartition("/")[2], resource.name)
        return resource

    def _find(self, resource: ResourceId) -> Record:
        record = self._world.store.get(resource)
        if record is not None:
            return record
        if resource.type == GROUP_TYPE:
            if nodes := node_group.find(self._world, resource):
                return nodes
            raise group_not_found(resource.name)
        self._check_group(resource.group_id)
        if resource.is_child and self._world.store.get(resource.parent) is None:
            raise parent_not_found(resource.parent.type, resource.parent.name)
        raise not_found(resource.type, "/".join(resource.names), resource.group)


def _schema(path: Path, version: str = "") -> Schema:
    """Raises ArmError (404) for an unknown type (Azure/azure-sdk-for-js#4843)."""
    wanted = f"{path.type}/{path.tail}" if path.tail else path.type
    acting = kinds().get(path.type.lower())
    if acting and path.tail.lower() in acting.actions:
        wanted = path.type
    found = schemas().get(wanted.lower())
    if found is None:
        namespace, _, kind = wanted.partition("/")
        types = sorted(schema.type for schema in schemas().values())
        message = (
            f"The resource type '{kind}' could not be found in the namespace '{namespace}' for api version "
            f"'{version}'. The simulator serves: {', '.join(types)}."
        )
        if not any(each.lower().startswith(f"{namespace}/".lower()) for each in types):
            message = f"The resource namespace '{namespace}' is invalid, or not simulated."
            raise ArmError(HTTPStatus.NOT_FOUND, "InvalidResourceNamespace", message)
        raise ArmError(HTTPStatus.NOT_FOUND, "InvalidResourceType", message)
    return found


def _check_scope(resource: ResourceId, schema: Schema) -> None:
    """Raises ArmError for a wrong scope. The error's code and text are guesses."""
    above = parse(resource.scope)
    in_subscription = resource.scope.count("/") == _SUBSCRIPTION_PARTS
    if schema.type == GROUP_TYPE:
        fits = in_subscription
    elif schema.sdk.path.startswith("/{scope}/"):
        fits = in_subscription or (above is not None and bool(above.names) and not above.tail)
    else:
        fits = above is not None and above.type == GROUP_TYPE and resource.group_id == above.id
    if not fits:
        message = f"The resource type '{schema.type}' is not at the scope '{resource.scope}'."
        raise ArmError(HTTPStatus.NOT_FOUND, "InvalidResourceType", message)


def _object(body: Any) -> Body:
    if not isinstance(body, dict):
        raise bad_request("The request content was invalid: a JSON object is required.", code="InvalidRequestContent")
    return body
