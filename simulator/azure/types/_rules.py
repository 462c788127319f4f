"""Rules that several resource types share."""

from __future__ import annotations

from datetime import UTC, datetime

from simulator.azure.errors import Problem, bad_request, conflict, invalid
from simulator.azure.faults import CREATED
from simulator.azure.ids import ResourceId
from simulator.azure.schema import schemas
from simulator.azure.store import Body, Record
from simulator.azure.world import World


def location(world: World, resource: ResourceId, body: Body, existing: Record | None) -> str:
    """The body's region in ARM's spelling. Raises ArmError where there is none, or the resource is elsewhere."""
    region = world.subscription.region(body["location"])
    if region is None:
        message = (
            f"The provided location '{body['location']}' is not available for resource type '{resource.type}'. "
            f"List of available regions for the resource type is '{','.join(sorted(world.subscription.regions))}'."
        )
        raise bad_request(message, code="LocationNotAvailableForResourceType")
    if existing and existing.body["location"] != region:
        message = f"The resource '{resource.name}' already exists in location '{existing.body['location']}'."
        raise conflict(message, code="InvalidResourceLocation")
    return region


def check_fixed(resource: ResourceId, body: Body, existing: Record | None) -> None:
    """Raises ArmError where an update changes what never changes."""
    if existing is None:
        return
    if changed := schemas()[resource.type.lower()].changed_immutables(existing.body, body):
        texts = (
            Problem(path, f"Changing property '{path}' is not allowed.", "PropertyChangeNotAllowed") for path in changed
        )
        raise invalid(list(texts))


def named(world: World, resource_type: str, name: str) -> Record | None:
    """The resource of that name, in whatever group, of a type whose names are unique in all of Azure."""
    wanted = name.lower()
    return next((found for found in world.store.all(resource_type) if found.id.name.lower() == wanted), None)


def made_at(record: Record, microsecond: int | None = None) -> str:
    """When it was made, as the storage provider writes times."""
    made = datetime.fromtimestamp(float(record.facts.get(CREATED, 0)), UTC)
    return f"{made if microsecond is None else made.replace(microsecond=microsecond):%Y-%m-%dT%H:%M:%S.%f}0Z"


def taken_elsewhere(world: World, resource: ResourceId) -> bool:
    """Whether somebody else's subscription has a resource of that name."""
    return resource.name.lower() in world.subscription.taken.get(resource.type, ())
