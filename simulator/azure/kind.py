"""The interface of resource types: rules, actions, and long-running operations."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from simulator.azure.arm_world import World
from simulator.azure.errors import in_progress
from simulator.azure.ids import ResourceId
from simulator.azure.store import Body, Record
from simulator.azure.subscription import guid

Action = Callable[[World, Record, Mapping[str, str], Body], Body | Record | None]
"""A POST's handler. Takes the resource, the query and the request's body. Raises ArmError.

None means 204, or 202 if the handler started an operation. Clients read a returned record at its path.
"""


@dataclass(frozen=True)
class Use:
    """A reference to another resource, which Azure does not delete while it is used."""

    of: str
    """The used resource's id, in any case."""
    by: str
    """The user as errors name it: mostly a part of the referencing resource."""
    addresses: int = 0
    address: str = ""


@dataclass(frozen=True)
class ZoneRecord:
    """A resource's record in a private DNS zone."""

    zone: ResourceId
    name: str
    """The name relative to the zone."""
    address: str
    of: ResourceId


class Kind(ABC):
    """A resource type with default methods. The caller checks shape, names and parents first."""

    asynchronous: bool = False
    """Whether changes run as operations (`provisioningState`). This class's second half is for these types."""
    creation_alone: bool = False
    """Whether only creation is asynchronous and polled at its result. Other changes are answered when done."""
    deleted_later: bool = False
    """Whether only deletion is asynchronous and polled at its result."""
    shown_deleted: bool = False
    """Whether a synchronous deletion's response contains the resource. Most have no body."""
    patches_tags: bool = True
    """Whether PATCH accepts only tags (`TagsObject` in azure-rest-api-specs)."""
    actions: Mapping[str, Action] = {}
    """Keys are lower-case."""

    @abstractmethod
    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        """Checks the type's rules, sets `record`'s body and stores it with its children. Raises ArmError.

        `record` is a copy of the existing resource, or new and empty.
        """

    def check_idle(self, world: World, record: Record) -> None:
        """Raises ArmError (409) while a running operation blocks updates."""
        if record.busy:
            raise in_progress(f"operation ({record.state})")

    def check_delete(self, world: World, record: Record) -> None:  # noqa: B027 - most types have no such rule
        """Raises ArmError if ARM rejects the deletion. Most types are deleted with their children."""

    def uses(self, world: World, record: Record) -> Iterable[Use]:
        """Returns references to other resources (`resource_types.uses` finds the reverse)."""
        return ()

    def names(self, world: World, record: Record) -> Mapping[str, Sequence[str]]:
        """Returns its services' public DNS names, by the group id of private endpoints."""
        return {}

    def hosts(self, world: World, record: Record) -> Mapping[str, str]:
        """Returns names without an alias in public DNS, each with its private address or an empty string."""
        return {}

    def unlinkable(self, record: Record) -> str:
        return ""

    def zone_records(self, world: World, record: Record) -> Iterable[ZoneRecord]:
        return ()

    def removed(self, world: World, record: Record) -> None:  # noqa: B027 - most types have nothing
        """Removes the backend before the record. Runs again after a kill in between."""

    def chosen(self, world: World, scope: str, records: Sequence[Record], text: str) -> Sequence[Record]:
        """Filters a scope's list by a `$filter`. By default, ignores it. Raises ArmError."""
        return records

    def outputs(self, world: World, record: Record) -> Body:
        """Returns ARM's properties besides those of the request."""
        return {}

    def view(self, world: World, record: Record) -> Body:
        return envelope(record, record.body | {"properties": record.properties | self.outputs(world, record)})

    # -- asynchronous operations ---------------------------------------------------------------------------------------

    def lock_owner(self, resource: ResourceId) -> ResourceId:
        """Returns the resource that serializes its operations (a pool's cluster).

        A resource that returns itself starts with the simulator.
        """
        return resource

    def prepare(self, world: World, record: Record, pause: Callable[[float], object]) -> None:  # noqa: B027
        """Prepares an operation before it waits for others (allocates machines). Raises ArmError."""

    def settle(self, world: World, record: Record) -> None:  # noqa: B027
        """Reconciles the backend with the record, also at every start of the simulator."""

    def inline(self, world: World, record: Record) -> Sequence[Record]:
        """Returns inline children, whose operations end with the resource's."""
        return ()

    def succeeded(self, world: World, record: Record) -> None:  # noqa: B027
        """Updates the record's facts after a successful operation."""

    def end(self, world: World, record: Record) -> None:  # noqa: B027
        """Stops the backend when deletion begins. The resource and its children are still stored."""


_LOWER_CASE = ("Microsoft.ContainerService/", "Microsoft.ManagedIdentity/")
"""Providers that write `resourcegroups` in ids (tests/contract/recordings/examples.yaml)."""


def envelope(record: Record, body: Body) -> Body:
    tag = {"etag": etag(record)} if record.id.type.startswith("Microsoft.Network/") else {}
    return {"id": shown_id(record.id), "name": record.id.name, "type": record.id.type, **tag, **body}


def shown_id(resource: ResourceId) -> str:
    is_lower = resource.type.startswith(_LOWER_CASE)
    return resource.text.replace("/resourceGroups/", "/resourcegroups/") if is_lower else resource.text


def etag(record: Record) -> str:
    version = guid(json.dumps(record.body, sort_keys=True), record.id.text)
    return version if record.id.type.startswith("Microsoft.Network/privateDnsZones") else f'W/"{version}"'
