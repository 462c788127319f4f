"""Route tables: where the packets of the subnets that name them go. Nothing is behind them but what AKS checks."""

from __future__ import annotations

from simulator.azure import uses
from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request, invalid
from simulator.azure.ids import ResourceId
from simulator.azure.kind import Kind, envelope
from simulator.azure.rest import Asked
from simulator.azure.schema import schemas
from simulator.azure.store import Body, Record
from simulator.azure.subscription import guid
from simulator.azure.types import _rules

TYPE = "Microsoft.Network/routeTables"
ANYWHERE = "0.0.0.0/0"


class RouteTables(Kind):
    """A table with its routes.

    The refusal of a deletion:
    https://learn.microsoft.com/troubleshoot/azure/azure-kubernetes/error-codes/inuseroutetablecannotbedeleted-error
    """

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        body["location"] = _rules.location(world, record.id, body, existing)
        _rules.check_fixed(record.id, body, existing)
        _rules.keep(world, record, body)

    def check_delete(self, world: World, record: Record) -> None:
        if users := [use.by for use in uses.of(world, record.id)]:
            message = (
                f"Route table {record.id.name} is in use and cannot be deleted. It is used by: {', '.join(users)}."
            )
            raise bad_request(message, code="InUseRouteTableCannotBeDeleted")

    def view(self, world: World, record: Record) -> Body:
        subnets = [{"id": use.by} for use in uses.of(world, record.id)]
        routes = [_route(record.id, each) for each in record.properties["routes"]]
        outputs = {"resourceGuid": guid(record.id.text, "guid"), "routes": routes} | (
            {"subnets": subnets} if subnets else {}
        )
        return envelope(record, record.body | {"properties": record.properties | outputs})


KIND = RouteTables()


def put_route(world: World, asked: Asked) -> Body:
    """Routes_CreateOrUpdate: a route of a table. Raises ArmError."""
    scope = f"/subscriptions/{asked['subscription']}/resourceGroups/{asked['group']}"
    given = asked.body if isinstance(asked.body, dict) else {}
    route: Body = {"name": asked["route"], "properties": given.get("properties")}
    with world.store.lock:
        record = _rules.found(world, ResourceId(scope, TYPE, (asked["table"],)))
        others = [each for each in record.properties["routes"] if each["name"].lower() != asked["route"].lower()]
        body = record.body | {"properties": record.properties | {"routes": [*others, route]}}
        if problems := schemas()[TYPE.lower()].problems(body):
            raise invalid(problems)
        _rules.keep(world, record, body)
    return _route(record.id, route) | {"type": f"{TYPE}/routes"}


def _route(table: ResourceId, route: Body) -> Body:
    done = route["properties"] | {"provisioningState": "Succeeded"}
    return {**route, "id": f"{table.text}/routes/{route['name']}", "properties": done}


def next_hop(properties: Body) -> str | None:
    """Returns the next hop of packets to the internet, or None without such a route."""
    hops = [each["properties"] for each in properties["routes"] if each["properties"]["addressPrefix"] == ANYWHERE]
    return str(hops[0]["nextHopType"]) if hops else None
