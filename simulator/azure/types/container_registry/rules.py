"""Container registries."""

from __future__ import annotations

from datetime import UTC, datetime

from simulator.azure.errors import conflict
from simulator.azure.faults import CREATED
from simulator.azure.ids import ResourceId
from simulator.azure.kind import Kind, envelope
from simulator.azure.registries import DOMAIN
from simulator.azure.store import Body, Record
from simulator.azure.types import _rules
from simulator.azure.world import World

TYPE = "Microsoft.ContainerRegistry/registries"
_CHECK_NAME = "https://docs.microsoft.com/en-us/rest/api/containerregistry/registries/checknameavailability"


class ContainerRegistries(Kind):
    """A registry, empty until images are pushed to it."""

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        body["location"] = _rules.location(world, record.id, body, existing)
        _check_name(world, record.id, existing)
        world.registries.add(record.id.name)
        body["properties"]["provisioningState"] = "Succeeded"
        record.body, record.error = body, None
        world.store.put(record)

    def removed(self, world: World, record: Record) -> None:
        world.registries.remove(record.id.name)

    def view(self, world: World, record: Record) -> Body:
        sku = record.body["sku"]
        outputs = {"loginServer": f"{record.id.name.lower()}{DOMAIN}", "creationDate": _created(record)}
        shown = record.body | {"sku": sku | {"tier": sku["name"]}, "properties": record.properties | outputs}
        return envelope(record, shown)


KIND = ContainerRegistries()


def named(world: World, name: str) -> Record | None:
    """The registry of that name, in whatever group."""
    return _rules.named(world, TYPE, name)


def _created(record: Record) -> str:
    return datetime.fromtimestamp(record.facts.get(CREATED, 0), UTC).isoformat()


def _check_name(world: World, resource: ResourceId, existing: Record | None) -> None:
    if existing:
        return
    if named(world, resource.name) or _rules.taken_elsewhere(world, resource):
        message = (
            f"The registry DNS name {resource.name.lower()}{DOMAIN} is already in use. "
            f"You can check if the name is already claimed using following API: {_CHECK_NAME}"
        )
        raise conflict(message, code="AlreadyInUse")
