"""Route tables of subnets. They affect only AKS's checks and node set-up."""

from __future__ import annotations

from http import HTTPStatus

from simulator.azure import resource_types
from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request, invalid, not_found
from simulator.azure.ids import ResourceId
from simulator.azure.kind import Kind
from simulator.azure.rest import PathRequest, Response
from simulator.azure.schema import schemas
from simulator.azure.store import Body, Record
from simulator.azure.subscription import guid
from simulator.azure.types import _rules

TYPE = "Microsoft.Network/routeTables"
ANYWHERE = "0.0.0.0/0"
_APPLIANCE = "VirtualAppliance"


class RouteTables(Kind):
    """Tables with their routes.

    Error for a table in use:
    https://learn.microsoft.com/troubleshoot/azure/azure-kubernetes/error-codes/inuseroutetablecannotbedeleted-error
    """

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        _rules.check_region(world, record, body, existing)
        _check(body["properties"]["routes"])
        _rules.save(world, record, body)

    def check_delete(self, world: World, record: Record) -> None:
        if users := [use.by for use in resource_types.uses(world, record.id)]:
            message = (
                f"Route table {record.id.name} is in use and cannot be deleted. It is used by: {', '.join(users)}."
            )
            raise bad_request(message, code="InUseRouteTableCannotBeDeleted")

    def outputs(self, world: World, record: Record) -> Body:
        subnets = [{"id": use.by} for use in resource_types.uses(world, record.id)]
        routes = [_route(record.id, each) for each in record.properties["routes"]]
        outputs = {"resourceGuid": guid(record.id.text, "guid"), "routes": routes}
        return outputs | ({"subnets": subnets} if subnets else {})


KIND = RouteTables()


def routes(world: World, request: PathRequest) -> Body:
    """Returns a table's routes (Routes_List). Raises ArmError (404)."""
    table = _table(world, request)
    return {"value": [_route(table.id, each) for each in table.properties["routes"]]}


def route(world: World, request: PathRequest) -> Body:
    """Returns a route (Routes_Get). Raises ArmError (404)."""
    table = _table(world, request)
    found, _ = _parted(table, request)
    if found is None:
        raise not_found(f"{TYPE}/routes", f"{table.id.name}/{request['route']}", table.id.group)
    return _route(table.id, found)


def put_route(world: World, request: PathRequest) -> Response:
    """Creates (201) or updates (200) a route (Routes_CreateOrUpdate). Raises ArmError."""
    given = request.body if isinstance(request.body, dict) else {}
    new: Body = {"name": request["route"], "properties": given.get("properties")}
    with world.store.lock:
        table = _table(world, request)
        before, others = _parted(table, request)
        body = table.body | {"properties": table.properties | {"routes": [*others, new]}}
        if problems := schemas()[TYPE.lower()].problems(body):
            raise invalid(problems)
        body = schemas()[TYPE.lower()].complete(body)
        _check(body["properties"]["routes"])
        _rules.save(world, table, body)
    return Response(HTTPStatus.OK if before else HTTPStatus.CREATED, _route(table.id, body["properties"]["routes"][-1]))


def delete_route(world: World, request: PathRequest) -> Response:
    """Deletes a route (Routes_Delete). Returns 204 for a missing route. Raises ArmError (404) for a missing table."""
    with world.store.lock:
        table = _table(world, request)
        before, table.properties["routes"] = _parted(table, request)
        world.store.put(table)
    return Response(HTTPStatus.OK if before else HTTPStatus.NO_CONTENT)


def _check(routes: list[Body]) -> None:
    """Error texts: hashicorp/terraform-provider-azurerm#20365, kubernetes-sigs/cloud-provider-azure#657."""
    names: dict[str, str] = {}
    for route in routes:
        name, properties = route["name"], route["properties"]
        if properties["nextHopType"] == _APPLIANCE and not properties.get("nextHopIpAddress"):
            message = f"NextHopIpAddress cannot be Null or Empty in route {name} when NextHopType is {_APPLIANCE}."
            raise bad_request(message, code="MissingNextHopIpAddress")
        if other := names.get(prefix := properties["addressPrefix"].lower()):
            message = f"Route: {name} conflicts with Route: {other}. Routes cannot have the same AddressPrefix."
            raise bad_request(message, code="RouteConflict")
        names[prefix] = name


def _table(world: World, request: PathRequest) -> Record:
    scope = f"/subscriptions/{request['subscription']}/resourceGroups/{request['group']}"
    return _rules.found(world, ResourceId(scope, TYPE, (request["table"],)))


def _parted(table: Record, request: PathRequest) -> tuple[Body | None, list[Body]]:
    named = {each["name"].lower(): each for each in table.properties["routes"]}
    return named.pop(request["route"].lower(), None), list(named.values())


def _route(table: ResourceId, route: Body) -> Body:
    done = route["properties"] | {"provisioningState": "Succeeded"}
    return {**route, "id": f"{table.text}/routes/{route['name']}", "type": f"{TYPE}/routes", "properties": done}


def next_hop(properties: Body) -> str | None:
    """Returns the next hop type of the default route, or None."""
    hops = [each["properties"] for each in properties["routes"] if each["properties"]["addressPrefix"] == ANYWHERE]
    return str(hops[0]["nextHopType"]) if hops else None
