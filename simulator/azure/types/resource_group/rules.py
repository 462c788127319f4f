"""Resource groups."""

from __future__ import annotations

from http import HTTPStatus

from simulator.azure import faults
from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError, conflict, group_being_deleted
from simulator.azure.kind import Kind
from simulator.azure.store import Body, Record


class ResourceGroups(Kind):
    """Groups. Deletion is asynchronous, because it deletes all resources in the group."""

    deleted_later = True

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        location = world.subscription.region(body["location"])
        if location is None:
            regions = ",".join(sorted(world.subscription.regions))
            message = (
                f"The provided location '{body['location']}' is not available for resource group. "
                f"List of available regions is '{regions}'."
            )
            raise ArmError(HTTPStatus.BAD_REQUEST, "LocationNotAvailableForResourceGroup", message)
        if existing and existing.body["location"] != location:
            message = (
                f"Invalid resource group location '{location}'. "
                f"The Resource group already exists in location '{existing.body['location']}'."
            )
            raise conflict(message, code="InvalidResourceGroupLocation")
        faults.check_policy(world, record.id.name, body.get("tags"))
        record.body = body | {"location": location, "properties": {"provisioningState": "Succeeded"}}
        world.store.put(record)

    def check_idle(self, world: World, record: Record) -> None:
        if record.busy:
            raise group_being_deleted(record.id.name)


KIND = ResourceGroups()
