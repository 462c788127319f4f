"""Rules that resource types share."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError, Problem, bad_request, conflict, invalid, not_found
from simulator.azure.faults import CREATED
from simulator.azure.ids import ResourceId, parse_id
from simulator.azure.schema import schemas
from simulator.azure.store import Body, Record


def check_region(world: World, record: Record, body: Body, existing: Record | None) -> None:
    """Normalizes the body's region. Raises ArmError for an unknown region or a forbidden change."""
    region = world.subscription.region(body["location"])
    if region is None:
        raise _not_available(record.id, body, world.subscription.regions)
    if existing and existing.body["location"] != region:
        message = f"The resource '{record.id.name}' already exists in location '{existing.body['location']}'."
        raise conflict(message, code="InvalidResourceLocation")
    body["location"] = region
    check_fixed(record.id, body, existing)


def global_location(resource: ResourceId, body: Body) -> str:
    """Returns the location of a type without regions. Raises ArmError for a region."""
    if body["location"].lower() != "global":
        raise _not_available(resource, body, ("global",))
    return "global"


def _not_available(resource: ResourceId, body: Body, regions: Iterable[str]) -> ArmError:
    message = (
        f"The provided location '{body['location']}' is not available for resource type '{resource.type}'. "
        f"List of available regions for the resource type is '{','.join(sorted(regions))}'."
    )
    return bad_request(message, code="LocationNotAvailableForResourceType")


def referenced(world: World, by: ResourceId, text: str, wanted: str, path: str, location: str = "") -> Record:
    """Returns the referenced resource. Raises ArmError if it is missing, or its type or region is wrong."""
    found = linked_id(text, path)
    record = world.store.get(found) if found.type.lower() == wanted.lower() else None
    if record is None or (location and region_of(world, record) != location):
        raise missing(by, text)
    return record


def linked_id(text: str, path: str) -> ResourceId:
    """Parses a resource id, which is at `path` in a body. Raises ArmError if it is invalid."""
    try:
        return parse_id(text)
    except ValueError as error:
        message = (
            f"Property id '{text}' at path '{path}' is invalid. Expect fully qualified resource Id that start with "
            "'/subscriptions/{subscriptionId}' or '/providers/{resourceProviderNamespace}/'."
        )
        raise bad_request(message, code="LinkedInvalidPropertyId", target=path) from error


def found(world: World, resource: ResourceId) -> Record:
    """Returns the resource. Raises ArmError (404)."""
    record = world.store.get(resource)
    if record is None:
        raise not_found(resource.type, "/".join(resource.names), resource.group)
    return record


def missing(by: ResourceId, text: str) -> ArmError:
    message = (
        f"Resource {text} referenced by resource {by.text} was not found. "
        "Please make sure that the referenced resource exists, and that both resources are in the same region."
    )
    return bad_request(message, code="InvalidResourceReference")


def region_of(world: World, record: Record) -> str:
    if "location" not in record.body and record.id.is_child and (parent := world.store.get(record.id.parent)):
        record = parent
    return str(record.body.get("location", ""))


def check_fixed(resource: ResourceId, body: Body, existing: Record | None) -> None:
    """Raises ArmError if an update changes an immutable property."""
    if existing and (changed := schemas()[resource.type.lower()].changed_immutables(existing.body, body)):
        raise forbidden_changes(changed)


def forbidden_changes(paths: list[str]) -> ArmError:
    code = "PropertyChangeNotAllowed"
    return invalid([Problem(path, f"Changing property '{path}' is not allowed.", code) for path in paths])


def save(world: World, record: Record, body: Body) -> None:
    """Stores the resource as Succeeded."""
    body["properties"]["provisioningState"] = "Succeeded"
    record.body = body
    world.store.put(record)


def named(world: World, resource_type: str, name: str) -> Record | None:
    """Returns the resource with this globally unique name in any group, or None."""
    wanted = name.lower()
    return next((found for found in world.store.all(resource_type) if found.id.name.lower() == wanted), None)


def created_at(record: Record, microsecond: int | None = None) -> str:
    """Returns the creation time in Microsoft.Storage's format."""
    made = datetime.fromtimestamp(float(record.facts.get(CREATED, 0)), UTC)
    return f"{made if microsecond is None else made.replace(microsecond=microsecond):%Y-%m-%dT%H:%M:%S.%f}0Z"


def taken_elsewhere(world: World, resource: ResourceId) -> bool:
    return resource.name.lower() in world.subscription.taken.get(resource.type, ())
